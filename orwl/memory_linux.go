package orwl

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	readOnly  = unix.PROT_READ
	readWrite = unix.PROT_READ | unix.PROT_WRITE
)

// fixedSize are the seals of a memory file: nobody who has it, in whatever process, can
// make it shorter, so touching a mapping never faults; or longer, so what a peer may
// occupy is what the owner gave.
const fixedSize = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// memoryFile is memory with a descriptor (memfd) and a size for life, so that it can be
// mapped several times and by several processes.
type memoryFile struct {
	fd   int
	name string
}

// newMemory makes memory in a file, all zero.
func newMemory(name string, size int) (memory, error) {
	if err := checkSize(size); err != nil {
		return memory{}, err
	}
	fd, err := unix.MemfdCreate(kernelName(name), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return memory{}, fmt.Errorf("memfd_create: %w", err)
	}
	f := &memoryFile{fd, name}
	if err := f.settle(size); err != nil {
		f.close()
		return memory{}, err
	}
	b, err := f.mmap(size, readWrite)
	if err != nil {
		f.close()
		return memory{}, err
	}
	return memory{b, f}, nil
}

// maxKernelName is how many bytes of the name of memory the kernel takes.
const maxKernelName = 249

// kernelName returns what the kernel takes of a name. It only shows it, in /proc.
func kernelName(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return name[:min(len(name), maxKernelName)]
}

// askForMemory asks the kernel for memory of this size, and gives it back at once.
func askForMemory(size int) error {
	b, err := unix.Mmap(-1, 0, size, readWrite, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("%d bytes: %w: %w", size, errMemory, err)
	}
	return unix.Munmap(b)
}

// settle gives the file its size, and leaves it to its user.
func (f *memoryFile) settle(size int) error {
	if err := unix.Ftruncate(f.fd, int64(size)); err != nil {
		return fmt.Errorf("ftruncate: %w", err)
	}
	if err := unix.Fchmod(f.fd, 0o600); err != nil {
		return fmt.Errorf("fchmod: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(f.fd), unix.F_ADD_SEALS, fixedSize); err != nil {
		return fmt.Errorf("sealing the size of memory: %w", err)
	}
	return nil
}

// holds checks a file of another process: that it has size bytes for good.
func (f *memoryFile) holds(size int) error {
	var s unix.Stat_t
	seals, err := unix.FcntlInt(uintptr(f.fd), unix.F_GET_SEALS, 0)
	if err == nil {
		err = unix.Fstat(f.fd, &s)
	}
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 || s.Size < int64(size) {
		return fmt.Errorf("%w: a descriptor that is not memory of %d bytes for good", errFrame, size)
	}
	return nil
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

// export returns a descriptor of its own for another process, which can write to the
// memory by it only where that is said.
func (f *memoryFile) export(writable bool) (fd int, err error) {
	if writable {
		fd, err = unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
	} else {
		fd, err = unix.Open(fmt.Sprint("/proc/self/fd/", f.fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("a descriptor of shared memory: %w", err)
	}
	return fd, nil
}

func (f *memoryFile) close() {
	if f != nil {
		unix.Close(f.fd)
	}
}

func closeDescriptor(fd int) { unix.Close(fd) }

func unmapMemory(b []byte) {
	if len(b) > 0 {
		unix.Munmap(b)
	}
}
