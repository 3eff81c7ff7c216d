package orwl

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// memoryFile is memory with a descriptor (memfd), so that it can be mapped
// several times and by several processes.
type memoryFile struct{ fd int }

func newMemoryFile(name string) (*memoryFile, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	return &memoryFile{fd: fd}, nil
}

// resize replaces the mapping b by one of the new size.
func (f *memoryFile) resize(b []byte, size int) ([]byte, error) {
	if err := unix.Ftruncate(f.fd, int64(size)); err != nil {
		return b, fmt.Errorf("ftruncate: %w", err)
	}
	if size == len(b) {
		return b, nil
	}
	n, err := f.mmap(size, readWrite)
	if err != nil {
		return b, err
	}
	unmapMemory(b)
	return n, nil
}

func (f *memoryFile) mmap(size, protection int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	b, err := unix.Mmap(f.fd, 0, size, protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", size, err)
	}
	return b, nil
}

// descriptor returns what another process needs to map the memory.
func (f *memoryFile) descriptor() int { return f.fd }

func (f *memoryFile) close() { unix.Close(f.fd) }

func unmapMemory(b []byte) {
	if len(b) > 0 {
		unix.Munmap(b)
	}
}
