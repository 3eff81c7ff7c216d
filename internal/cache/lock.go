package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// lockName is the lock file in Dir and in each cache folder.
const lockName = ".lock"

// hostLock is held while what the pilots of a host share is looked at and
// changed. A nil one is no lock.
type hostLock struct{ file *os.File }

func (h *hostLock) lock() (unlock func()) {
	if h == nil {
		return func() {}
	}
	fd := int(h.file.Fd())
	for unix.Flock(fd, unix.LOCK_EX) == unix.EINTR {
		continue
	}
	return func() { _ = unix.Flock(fd, unix.LOCK_UN) }
}

// lockFolder takes the lock of a cache folder, and makes it if make is set. A folder
// whose lock is free is one that a pilot has left.
func lockFolder(folder string, make bool) (*os.File, error) {
	path := folder + "/" + lockName
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if make && errors.Is(err, fs.ErrNotExist) {
		return disk.NewLock(path, nil)
	}
	if err != nil {
		return nil, err
	}
	if err := disk.TryLock(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cache folder %s: %w", folder, err)
	}
	return f, nil
}
