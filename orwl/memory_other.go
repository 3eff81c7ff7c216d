//go:build !linux

package orwl

import "errors"

const readOnly, readWrite = 0, 0

type memoryFile struct{ name string }

func newMemory(string, int) (memory, error) {
	return memory{}, errors.New("memory that can be shared and strict mode need Linux (memfd)")
}

func askForMemory(int) error { return nil }

func (f *memoryFile) holds(int) error               { return errors.ErrUnsupported }
func (f *memoryFile) mmap(int, int) ([]byte, error) { return nil, errors.ErrUnsupported }
func (f *memoryFile) export(bool) (int, error)      { return -1, errors.ErrUnsupported }
func (f *memoryFile) close()                        {}
func closeDescriptor(int)                           {}
func unmapMemory([]byte)                            {}
