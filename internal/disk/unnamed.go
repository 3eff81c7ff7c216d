//go:build linux

package disk

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// PartPrefix begins the names of files that are not complete, where the file
// system knows no files without a name. Whoever finds one whose process is gone
// may remove it.
const PartPrefix = ".part-"

// Unnamed is a file that is to get its name when it is complete: nothing is left
// of it if the process ends before. Where the file system knows no files without
// a name, it bears one with PartPrefix until then.
type Unnamed struct {
	*os.File
	temporary string
}

// tmpfile is 0 in tests of file systems that know no files without a name.
var tmpfile = unix.O_TMPFILE

// CreateUnnamed makes a file for a folder. Flags are those of [os.OpenFile],
// besides reading and writing.
func CreateUnnamed(folder string, flags int, mode fs.FileMode) (*Unnamed, error) {
	if tmpfile != 0 {
		f, err := os.OpenFile(folder, tmpfile|os.O_RDWR|flags, mode)
		if err == nil {
			return &Unnamed{File: f}, nil
		}
		if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EINVAL) &&
			!errors.Is(err, unix.ENOSYS) {
			return nil, err
		}
	}
	name := filepath.Join(folder, PartPrefix+rand.Text())
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|flags, mode)
	if err != nil {
		return nil, err
	}
	return &Unnamed{File: f, temporary: name}, nil
}

// Link gives the file its name, on the file system of its folder. It replaces
// nothing: an error that wraps fs.ErrExist says that the name is taken.
func (u *Unnamed) Link(target string) error {
	if u.temporary == "" {
		return Link(u.File, target)
	}
	err := unix.Renameat2(unix.AT_FDCWD, u.temporary, unix.AT_FDCWD, target, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return os.Link(u.temporary, target) // Close takes the other name away
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: u.temporary, New: target, Err: err}
	}
	u.temporary = ""
	return nil
}

// Close closes the file, which is gone if it has no name.
func (u *Unnamed) Close() error {
	if u.temporary != "" {
		_ = os.Remove(u.temporary)
	}
	return u.File.Close()
}
