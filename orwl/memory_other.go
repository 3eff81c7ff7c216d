//go:build !linux

package orwl

import "errors"

const readOnly, readWrite = 0, 0

type memoryFile struct{}

func newMemoryFile(string) (*memoryFile, error) {
	return nil, errors.New("memory that can be shared and strict mode need Linux (memfd)")
}

func (f *memoryFile) resize(b []byte, _ int) ([]byte, error) { return b, errors.ErrUnsupported }
func (f *memoryFile) mmap(int, int) ([]byte, error)          { return nil, errors.ErrUnsupported }
func (f *memoryFile) duplicate() (int, error)                { return -1, errors.ErrUnsupported }
func (f *memoryFile) read([]byte) error                      { return errors.ErrUnsupported }
func (f *memoryFile) close()                                 {}
func closeDescriptor(int)                                    {}
func unmapMemory([]byte)                                     {}
