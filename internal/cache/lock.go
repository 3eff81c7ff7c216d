package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// lockName is the lock file in Dir and in each cache folder.
const lockName = ".lock"

// LockTime is how long a cache waits for the lock of the host. Its holder needs a few
// system calls. One that was stopped (SIGSTOP) needs as long as its server has patience with
// it, and the pilot that waits must not fall silent meanwhile.
const LockTime = 2 * time.Second

// errStopped says that nobody may look at what the pilots of the host share.
var errStopped = fmt.Errorf("%w: another pilot of this host holds the lock of their caches, and does not go on",
	ErrFull)

// hostLock is held while what the pilots of a host share is looked at and changed. A nil
// one is no lock. After it was waited for in vain, the cache does without until the holder
// has given it up.
type hostLock struct {
	file *os.File
	log  *slog.Logger

	mu      sync.Mutex // guards stopped
	stopped bool       // a goroutine still waits for the lock, to give it up at once
}

// lock reports whether the lock was taken. The mutex of the cache is held.
func (h *hostLock) lock() (unlock func(), taken bool) {
	if h == nil {
		return func() {}, true
	}
	unlock = func() { _ = h.flock(unix.LOCK_UN) }
	if h.isStopped() {
		return func() {}, false
	}
	if h.flock(unix.LOCK_EX|unix.LOCK_NB) == nil {
		return unlock, true
	}
	granted := make(chan struct{})
	go h.wait(granted)
	patience := time.NewTimer(LockTime)
	defer patience.Stop()
	select {
	case <-granted:
		return unlock, true
	case <-patience.C:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-granted: // just now
		return unlock, true
	default:
	}
	h.stopped = true
	h.log.Warn("another pilot of this host holds the lock of the caches and does not go on; until it does, files go "+
		"past the cache", "lock", h.file.Name())
	return func() {}, false
}

// wait waits for the lock, however long that takes, and gives it to whoever still wants it.
func (h *hostLock) wait(granted chan<- struct{}) {
	_ = h.flock(unix.LOCK_EX)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		close(granted)
		return
	}
	_ = h.flock(unix.LOCK_UN)
	h.stopped = false
	h.log.Info("the lock of the caches is free again", "lock", h.file.Name())
}

func (h *hostLock) isStopped() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopped
}

func (h *hostLock) flock(how int) (err error) {
	raw, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	again := func(fd uintptr) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Flock(int(fd), how)
		}
	}
	failed := raw.Control(again)
	return errors.Join(failed, err)
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
	err = disk.TryLock(f)
	if err == nil {
		err = stillAt(f, path)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("cache folder %s: %w", folder, err)
	}
	return f, nil
}

// stillAt returns an error unless an open file is what stands at a path: its folder may have
// been taken over or removed after it was opened, and another one made.
func stillAt(f *os.File, path string) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if err == nil && !os.SameFile(opened, there) {
		err = disk.ErrHeld
	}
	return err
}
