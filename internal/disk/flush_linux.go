package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Flush returns when the contents of a file are written, and as durable as what is changed after
// that in the same file system: where that keeps the order of changes, no name that the file gets
// then stands for less. [os.File.Sync] of the file, later, makes both durable. Where a file system
// does not know that, Flush is Sync.
func Flush(f *os.File) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	for {
		err := unix.SyncFileRange(int(f.Fd()), 0, 0, all)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ESPIPE),
			errors.Is(err, unix.EPERM):
			return f.Sync()
		default:
			return &os.PathError{Op: "write", Path: f.Name(), Err: err}
		}
	}
}

// BeginFlush has written what a file holds between two places, and does not wait for that, unless
// the device has more to do than it takes. An error is told by Flush or by [os.File.Sync], later.
func BeginFlush(f *os.File, from, to int64) {
	_ = unix.SyncFileRange(int(f.Fd()), from, to-from, unix.SYNC_FILE_RANGE_WRITE)
}
