// Package disk makes changes of files survive a crash of the machine. A file
// needs two steps: one for its contents, and one, through its folder, for its
// name.
//
// Beside that it has locks of files, and tells whether a folder is this user's alone.
package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Sync returns when the contents of a file, or the names in a folder, are on
// disk. After an error they may be there or not.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

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

// BeginFlush has the contents of a file written, and does not wait for that.
func BeginFlush(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}

// Boot is another text after each start of the machine; empty where the system
// does not tell.
func Boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// Machine tells this start of this machine from every other machine, whatever its
// name is: two nodes of one name share no cache, nor does one with what it was
// before it started again. It is a hash, since the identity of a machine is not
// for everybody.
func Machine() string {
	id, _ := os.ReadFile("/etc/machine-id") // without one the start tells enough
	sum := sha256.Sum256([]byte("fairway:" + strings.TrimSpace(string(id)) + ":" + Boot()))
	return hex.EncodeToString(sum[:8])
}
