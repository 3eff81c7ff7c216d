package site

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
	"fairway/internal/quantity"
)

// byteOrderMark begins files of some editors. It says nothing in UTF-8.
const byteOrderMark = "\ufeff"

// readFile reads a file of sites. The error wraps fs.ErrNotExist where there is none, and
// says what to do about anything else that stands there.
func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe is not waited for
	if errors.Is(err, fs.ErrNotExist) {
		if target, link := os.Readlink(path); link == nil {
			return nil, fmt.Errorf("%s is a link to %s, which does not exist: make that file, or remove the link", path, target)
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, and sites are described in a file of that name: move the folder away", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: sites are described in one", path)
	case info.Size() > MaxFile:
		return nil,
			fmt.Errorf("%s has %s, and a file of sites has at most %s: describe sites for one workflow in %s beside it",
				path, quantity.Bytes(info.Size()), quantity.Bytes(MaxFile), FileName)
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err == nil && !utf8.Valid(data) {
		err = fmt.Errorf("%s is not in UTF-8: have your editor save it in that encoding", path)
	}
	return data, err
}

func isBlank(data []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte(byteOrderMark)))) == 0
}

func endings(lines, file string) string {
	if strings.Contains(file, "\r\n") {
		return strings.ReplaceAll(lines, "\n", "\r\n")
	}
	return lines
}

// edit changes a file of sites as a whole. It keeps its mode and owner, and a link stays a
// link. Of several that edit a file at the same time, each sees what those before it have
// written. A file that is not this user's to change is refused.
func edit(path string, change func(before []byte) (after string, err error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	if err := lock(folder); err != nil {
		return fmt.Errorf("locking %s: %w", folder.Name(), err)
	}
	before, err := readFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	is, err := ownOf(path)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil || after == string(before) {
		return err
	}
	return replace(path, after, is)
}

// lock waits until nobody else edits a file of the folder. Where the file system has no
// locks, two people could.
func lock(folder *os.File) error {
	for {
		err := unix.Flock(int(folder.Fd()), unix.LOCK_EX)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EBADF):
			return nil
		default:
			return err
		}
	}
}

// ownOf is the mode and the owner of a file that may be changed.
func ownOf(path string) (is unix.Stat_t, err error) {
	err = unix.Stat(path, &is)
	user := os.Geteuid()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unix.Stat_t{Mode: 0o600, Uid: uint32(user), Gid: uint32(os.Getegid())}, nil
	case err != nil:
		return is, &fs.PathError{Op: "stat", Path: path, Err: err}
	case user != 0 && int(is.Uid) != user:
		return is,
			fmt.Errorf("%s belongs to another user: have its owner change it, or describe the site in a file of your own", path)
	case is.Mode&0o200 == 0:
		return is, fmt.Errorf("%s is read-only: `chmod u+w` it, or describe the site in another file", path)
	}
	return is, nil
}

func replace(path, text string, is unix.Stat_t) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = fresh.WriteString(text)
	if err == nil && (int(is.Uid) != os.Geteuid() || int(is.Gid) != os.Getegid()) {
		_ = fresh.Chown(int(is.Uid), int(is.Gid)) // a group that is not this user's becomes this user's
	}
	err = errors.Join(err, fresh.Chmod(fs.FileMode(is.Mode&0o777)), fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return disk.Sync(filepath.Dir(path))
}
