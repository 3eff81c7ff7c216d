package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lockName is the lock file in Dir and in each cache folder.
const lockName = ".lock"

// fileLock is a lock that ends with the process that holds it.
type fileLock struct{ file *os.File }

// errHeld says that another process holds a lock.
var errHeld = errors.New("the lock is held")

// openLock opens a lock file, made if make is set, without taking the lock.
func openLock(path string, make bool) (*fileLock, error) {
	flags := os.O_RDWR
	if make {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		return nil, err
	}
	return &fileLock{f}, nil
}

// try takes the lock if it is free, and fails with errHeld if it is not.
func (l *fileLock) try() error {
	err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errHeld
	}
	return err
}

func (l *fileLock) close() { _ = l.file.Close() }

// hostLock is held while what the pilots of a host share is looked at and
// changed. A nil one is no lock.
type hostLock struct{ file *fileLock }

func (h *hostLock) lock() (unlock func()) {
	if h == nil {
		return func() {}
	}
	fd := int(h.file.file.Fd())
	for unix.Flock(fd, unix.LOCK_EX) == unix.EINTR {
		continue
	}
	return func() { _ = unix.Flock(fd, unix.LOCK_UN) }
}

// lockFolder takes the lock of a cache folder, and makes it if make is set.
func lockFolder(folder string, make bool) (*fileLock, error) {
	path := folder + "/" + lockName
	l, err := openLock(path, false)
	if make && errors.Is(err, fs.ErrNotExist) {
		return newLock(path)
	}
	if err != nil {
		return nil, err
	}
	if err := l.try(); err != nil {
		l.close()
		return nil, fmt.Errorf("cache folder %s: %w", folder, err)
	}
	return l, nil
}

// newLock makes a lock file that is held from when it has its name on: a folder
// whose lock is not held is taken to be of a pilot that is gone.
func newLock(path string) (*fileLock, error) {
	l, err := openLock(path+".new", true)
	if err != nil {
		return nil, err
	}
	err = l.try()
	if err == nil {
		err = os.Rename(l.file.Name(), path)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}
