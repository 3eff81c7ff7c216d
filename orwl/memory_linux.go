package orwl

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	readOnly  = unix.PROT_READ
	readWrite = unix.PROT_READ | unix.PROT_WRITE
)

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
	return f.mapping(size, protection, unix.MAP_SHARED)
}

func (f *memoryFile) mapping(size, protection, flags int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	b, err := unix.Mmap(f.fd, 0, size, protection, flags)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", size, err)
	}
	return b, nil
}

// duplicate returns a descriptor of its own of what another process needs to map the
// memory.
func (f *memoryFile) duplicate() (int, error) {
	fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("duplicating a descriptor: %w", err)
	}
	return fd, nil
}

// read fills b from the start of the file. What the file lacks, because
// another process made it shorter, stays zero.
func (f *memoryFile) read(b []byte) error {
	for at := 0; at < len(b); {
		n, err := unix.Pread(f.fd, b[at:], int64(at))
		if err != nil {
			return fmt.Errorf("reading shared memory: %w", err)
		}
		if n == 0 {
			return nil
		}
		at += n
	}
	return nil
}

func (f *memoryFile) close() { unix.Close(f.fd) }

func closeDescriptor(fd int) { unix.Close(fd) }

func unmapMemory(b []byte) {
	if len(b) > 0 {
		unix.Munmap(b)
	}
}
