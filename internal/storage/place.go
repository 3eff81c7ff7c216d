package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// place makes the contents of source appear at target, complete or not at all,
// and with durable contents if that is asked for.
func place(ctx context.Context, source, target string, durable bool) error {
	in, err := openRegular(source)
	if err != nil {
		return err
	}
	defer in.Close()
	if durable {
		if err := in.Sync(); err != nil {
			return err
		}
	}
	err = disk.Link(in, target)
	if err == nil || errors.Is(err, os.ErrExist) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return full(err)
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return full(create(target, info.Mode(), durable, func(out *os.File) error { return disk.Copy(ctx, out, in) }))
}

// openRegular opens a file for reading; what could block, or do something when it
// is opened, is not opened.
func openRegular(path string) (*os.File, error) {
	if _, err := regular(path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// create makes a file at target whose contents write provides, and which may be
// used as mode says but for writing. Until they are complete the file has no
// name, so nothing is left of it if the process ends.
func create(target string, mode fs.FileMode, durable bool, write func(*os.File) error) error {
	out, err := disk.CreateUnnamed(filepath.Dir(target), 0, 0o666)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := write(out.File); err != nil {
		return err
	}
	if err := out.Chmod(mode.Perm()&^0o222 | 0o400); err != nil {
		return err
	}
	if durable {
		if err := out.Sync(); err != nil {
			return err
		}
	}
	point := getWritten
	if durable {
		point = putWritten
	}
	if err := point.Hit(); err != nil {
		return err
	}
	return out.Link(target)
}

// sameContents returns an error that wraps fs.ErrExist unless both files hold
// the same bytes.
func sameContents(path, target string) error {
	a, err := os.Open(path)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := os.OpenFile(target, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer b.Close()
	same, err := Equal(a, b)
	if err == nil && !same {
		err = &os.PathError{Op: "create", Path: target, Err: os.ErrExist}
	}
	return err
}

// Equal reports whether two open files hold the same bytes from where they stand,
// which is their beginning.
func Equal(a, b *os.File) (bool, error) {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	if err := errors.Join(errA, errB); err != nil || os.SameFile(infoA, infoB) {
		return err == nil, err
	}
	if infoA.Size() != infoB.Size() {
		return false, nil
	}
	var left, right [64 << 10]byte
	for {
		n, err := io.ReadFull(a, left[:])
		m, _ := io.ReadFull(b, right[:])
		if !bytes.Equal(left[:n], right[:m]) {
			return false, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}
