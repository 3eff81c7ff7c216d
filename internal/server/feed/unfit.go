package feed

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/logical"
)

// Unfit says why what stands at a path can be no file of an input or, where the path
// ends in a slash, no folder of one; nil if it can. Nothing but folders is opened:
// opening a named pipe blocks, and opening a device may change it.
func Unfit(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(danglingLink(path), err)
	}
	if err != nil {
		return err
	}
	if logical.IsFolder(path) {
		if _, err := archive.List(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	if err := notRegular(path, info); err != nil {
		return err
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return nil
}

// danglingLink says where the link at a path leads; nil if there is none.
func danglingLink(path string) error {
	to, err := os.Readlink(path)
	if err != nil {
		return nil
	}
	return fmt.Errorf("%s is a link to %s, which is not there", path, to)
}

// notRegular says what is at a path if that is no regular file.
func notRegular(path string, info fs.FileInfo) error {
	what := "of an unknown kind"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("%s is %s, not a regular file", path, what)
}
