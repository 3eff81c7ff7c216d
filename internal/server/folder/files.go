package folder

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// IgnoreMissing is nil for an error that says that there is no such file, and
// else the error.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// LinkOrCopy makes target another name of source, or a copy of it where they are
// on different file systems, and says which. What had the name is replaced.
func LinkOrCopy(source, target string) (linked bool, err error) {
	err = os.Link(source, target)
	if errors.Is(err, fs.ErrExist) {
		if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		err = os.Link(source, target)
	}
	if err == nil || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err == nil, err
	}
	if err := copyWithTime(source, target); err != nil {
		_ = os.Remove(target)
		return false, err
	}
	return false, nil
}

func copyWithTime(source, target string) error {
	in, err := os.OpenFile(source, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Chtimes(target, info.ModTime(), info.ModTime())
}
