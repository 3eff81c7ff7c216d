package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

type notice struct {
	id           uint64
	pid          uint32 // of the thread; 0 if it cannot be seen from here
	_            uint32
	number       int32
	architecture uint32
	_            uint64
	arguments    [6]uint64
}

type noticeAnswer struct {
	id    uint64
	_     int64
	_     int32
	flags uint32
}

func (n *notice) path() string {
	folder, name, flags := n.call()
	if n.pid == 0 || flags&unix.O_ACCMODE == unix.O_WRONLY || flags&(unix.O_DIRECTORY|unix.O_PATH|unix.O_TRUNC) != 0 {
		return ""
	}
	path := n.text(name)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	link := fmt.Sprintf("/proc/%d/cwd", n.pid)
	if folder != unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/fd/%d", n.pid, folder)
	}
	above, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	return filepath.Join(above, path)
}

// call returns what the system call asks for: the folder that a relative path
// begins at, the address of the path, and the flags.
func (n *notice) call() (folder int32, name, flags uint64) {
	switch n.number {
	case unix.SYS_OPENAT:
		return int32(n.arguments[0]), n.arguments[1], n.arguments[2]
	case unix.SYS_OPENAT2:
		var how [8]byte // begins with the flags
		n.read(how[:], n.arguments[2])
		return int32(n.arguments[0]), n.arguments[1], binary.NativeEndian.Uint64(how[:])
	default: // open, where there is one
		return unix.AT_FDCWD, n.arguments[0], n.arguments[1]
	}
}

// text reads a text from the memory of the process, or nothing if it is longer
// than a path may be.
func (n *notice) text(at uint64) string {
	buffer := make([]byte, unix.PathMax)
	length := bytes.IndexByte(buffer[:n.read(buffer, at)], 0)
	return string(buffer[:max(0, length)])
}

// read reads from the memory of the process, as much as there is. It is done
// page by page, since what begins on a page may end before the next.
func (n *notice) read(into []byte, at uint64) int {
	page := uint64(os.Getpagesize())
	first := min(uint64(len(into)), page-at%page)
	remote := []unix.RemoteIovec{
		{Base: uintptr(at), Len: int(first)}, {Base: uintptr(at + first), Len: len(into) - int(first)},
	}
	local := []unix.Iovec{{Base: unsafe.SliceData(into)}}
	local[0].SetLen(len(into))
	count, _ := unix.ProcessVMReadv(int(n.pid), local, remote, 0)
	return max(0, count)
}
