package disk

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another open file has a lock.
var ErrHeld = errors.New("the lock is held")

// TryLock takes the lock of an open file, which ends with the file, and with the
// process at the latest. It fails with ErrHeld where another open file has it.
func TryLock(f *os.File) error { return try(f, unix.LOCK_EX) }

// TryShare is TryLock for a lock that several open files may have, if none has taken
// it by TryLock.
func TryShare(f *os.File) error { return try(f, unix.LOCK_SH) }

func try(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

// IsStopped reports whether a process is stopped, as by Ctrl-Z or by a batch system that suspends
// a job: it keeps its locks, and does nothing. It is false where that cannot be found out.
func IsStopped(process int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return false
	}
	// The name of the program, in parentheses, may hold anything.
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}

// UnnamedLock is the path of a lock file while NewLock makes it. It is held nearly as long
// as it is there.
func UnnamedLock(path string) string { return path + ".new" }

// NewLock makes a lock file that is held from when it has its name on, for those who
// take a lock that is free for one that a dead process has left. write says what it
// holds; it may be nil.
func NewLock(path string, write func(*os.File) error) (*os.File, error) {
	f, err := os.Create(UnnamedLock(path))
	if err != nil {
		return nil, err
	}
	err = TryLock(f)
	if err == nil && write != nil {
		err = write(f)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
