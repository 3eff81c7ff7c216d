package memory

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

func protection(writable bool) int {
	if writable {
		return unix.PROT_READ | unix.PROT_WRITE
	}
	return unix.PROT_READ
}

// fixedSize are the seals of a memory file: nobody who has it, in whatever process, can
// make it shorter, so touching a mapping never faults; or longer, so what a peer may
// occupy is what the owner gave.
const fixedSize = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// File is memory with a descriptor (memfd) and a size for life, so that it can be
// mapped several times and by several processes.
type File struct {
	fd   int
	name string
}

// NewInFile makes memory in a file, all zero.
func NewInFile(name string, size int) (Region, error) {
	if err := checkSize(size); err != nil {
		return Region{}, err
	}
	fd, err := unix.MemfdCreate(kernelName(name), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return Region{}, fmt.Errorf("memfd_create: %w", err)
	}
	f := &File{fd, name}
	if err := f.resize(size); err != nil {
		f.close()
		return Region{}, err
	}
	b, err := f.Map(size, true)
	if err != nil {
		f.close()
		return Region{}, err
	}
	return Region{b, f}, nil
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
	b, err := unix.Mmap(-1, 0, size, protection(true), unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("%d bytes: %w: %w", size, errMemory, err)
	}
	return unix.Munmap(b)
}

// resize gives the file its size, and leaves it to its user.
func (f *File) resize(size int) error {
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

// errUnsealed says that a descriptor is not one of memory whose size is fixed.
var errUnsealed = errors.New("the descriptor that came is not one of memory with a fixed size")

// Receive maps size bytes by a descriptor of another process, and closes it where that
// cannot be done. Memory that could become shorter is refused, since touching it would end
// this process.
func Receive(fd, size int, writable bool) (Region, error) {
	f := &File{fd: fd}
	err := f.holds(size)
	if err == nil {
		var b []byte
		if b, err = f.Map(size, writable); err == nil {
			return Region{b, f}, nil
		}
	}
	f.close()
	return Region{}, err
}

// holds checks that the file has size bytes for good.
func (f *File) holds(size int) error {
	var s unix.Stat_t
	seals, err := unix.FcntlInt(uintptr(f.fd), unix.F_GET_SEALS, 0)
	if err == nil {
		err = unix.Fstat(f.fd, &s)
	}
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 || s.Size < int64(size) {
		return fmt.Errorf("%d bytes: %w", size, errUnsealed)
	}
	return nil
}

// Map maps the first size bytes, to be written or only to be read. Who calls it unmaps them.
func (f *File) Map(size int, writable bool) ([]byte, error) {
	return f.mapping(size, writable, unix.MAP_SHARED)
}

func (f *File) mapping(size int, writable bool, flags int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	b, err := unix.Mmap(f.fd, 0, size, protection(writable), flags)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", size, err)
	}
	return b, nil
}

// Export returns a descriptor of its own for another process, which can write to the
// memory by it only where that is said.
func (f *File) Export(writable bool) (fd int, err error) {
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

func (f *File) close() {
	if f != nil {
		unix.Close(f.fd)
	}
}

func unmapMemory(b []byte) {
	if len(b) > 0 {
		unix.Munmap(b)
	}
}
