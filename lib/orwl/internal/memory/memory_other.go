//go:build !linux

package memory

import "errors"

// File is memory with a descriptor, which there is on Linux alone.
type File struct{ name string }

// NewInFile refuses: it needs memfd.
func NewInFile(string, int) (Region, error) {
	return Region{}, errors.New("memory that can be shared and strict mode need Linux (memfd)")
}

// Receive refuses: no descriptor comes here.
func Receive(int, int, bool) (Region, error) { return Region{}, errors.ErrUnsupported }

func askForMemory(int) error { return nil }

// Map refuses.
func (f *File) Map(int, bool) ([]byte, error) { return nil, errors.ErrUnsupported }

// Export refuses.
func (f *File) Export(bool) (int, error) { return -1, errors.ErrUnsupported }

func (f *File) close() {}

func unmapMemory([]byte) {}
