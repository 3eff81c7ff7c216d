package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// StateFolder is the name of the folder beside a workflow that holds the state
// of its run. What is in it stands in docs/files-on-disk.md.
const StateFolder = ".fairway"

// RunningError says that another process runs the workflow.
type RunningError struct {
	Folder string // the workflow's
	PID    int    // 0 if it could not be found out
}

func (e *RunningError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("the workflow in %s is being run by %s; use --follow to watch it", e.Folder, who)
}

// Lock is held while a server runs. The kernel gives it up when the
// process ends, however it ends.
type Lock struct{ file *os.File }

// Claim takes the lock of a workflow folder, and makes its state, with an identity,
// if need be. A copy of another folder gets its own identity, and keeps its files. A
// state folder that is not ours is refused.
func Claim(workflow string) (*Lock, Layout, error) {
	state := filepath.Join(workflow, StateFolder)
	lock, err := LockState(state)
	if err != nil {
		return nil, Layout{}, err
	}
	l, err := claimState(workflow)
	if err != nil {
		return nil, Layout{}, errors.Join(err, lock.Release())
	}
	return lock, l, nil
}

// ErrBeingMade: another server that stands by for this one is just making the state. It is tried again.
var ErrBeingMade = errors.New("another server is making the state")

// ClaimShared is Claim for one of several servers that stand by for each other, on whatever machines: they
// have the lock together, and a server of another kind has it alone. Which of them is active, the
// store tells.
func ClaimShared(workflow string) (*Lock, Layout, error) {
	state := filepath.Join(workflow, StateFolder)
	alone, err := LockState(state)
	if err == nil {
		l, err := claimState(workflow)
		if err == nil {
			err = setLock(alone.file, unix.F_RDLCK)
		}
		if err != nil {
			return nil, Layout{}, errors.Join(err, alone.Release())
		}
		return alone, l, nil
	}
	if !errors.As(err, new(*RunningError)) {
		return nil, Layout{}, err
	}
	shared, err := openLockAs(state, unix.F_RDLCK)
	if err != nil {
		return nil, Layout{}, err
	}
	i, err := readIdentity(state)
	if i == nil && err == nil {
		err = ErrBeingMade
	}
	var l Layout
	if err == nil {
		l, err = memberLayout(workflow, i)
	}
	if err != nil {
		return nil, Layout{}, errors.Join(err, shared.Release())
	}
	return shared, l, nil
}

// ShowHolder names this process to who asks why the lock is held.
func (l *Lock) ShowHolder() error { return writePID(l.file) }

// LockState takes the lock of a state folder, and makes the folder if need be. A
// folder that is not ours is refused, and so is a new one where no state can be kept: what was
// made for it goes again.
func LockState(state string) (*Lock, error) {
	made := missing(state)
	if err := claimFolder(state); err != nil {
		return nil, err
	}
	if err := checkFileSystem(state, system); err != nil {
		for _, folder := range made {
			_ = os.Remove(folder) // unless something is in it
		}
		return nil, err
	}
	return openLock(state)
}

func openLock(state string) (*Lock, error) {
	lock, err := openLockAs(state, unix.F_WRLCK)
	if err != nil {
		return nil, err
	}
	if err := lock.ShowHolder(); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// openLockAs takes the lock alone (F_WRLCK), or together with others (F_RDLCK).
func openLockAs(state string, kind int16) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(state, lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := setLock(file, kind); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EAGAIN) {
			return nil, &RunningError{Folder: filepath.Dir(state), PID: holder(state)}
		}
		return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	return &Lock{file: file}, nil
}

// ownLock is a lock that belongs to the open file, so that whoever asks for it
// (IsRunning) does not take it.
func ownLock(kind int16) *unix.Flock_t { return &unix.Flock_t{Type: kind} }

func tryLock(file *os.File) error { return setLock(file, unix.F_WRLCK) }

func setLock(file *os.File, kind int16) error {
	for {
		err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, ownLock(kind))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writePID leaves the number of the holder in the file, for the message that
// others get. Only the lock itself counts.
func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(state string) int {
	text, err := os.ReadFile(filepath.Join(state, lockName))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// Stopped returns the number of the process that holds the lock of a state folder if
// it was stopped (Ctrl-Z, SIGSTOP), so that it answers nobody; otherwise 0.
func Stopped(state string) int {
	pid := holder(state)
	if !disk.IsStopped(pid) {
		return 0
	}
	if running, err := IsRunning(state); err != nil || !running {
		return 0 // the number is that of another process by now
	}
	return pid
}

// CheckFree returns a *RunningError where a server runs the workflow of a folder.
func CheckFree(workflow string) error {
	state := filepath.Join(workflow, StateFolder)
	if running, err := IsRunning(state); err != nil || !running {
		return err
	}
	return &RunningError{Folder: workflow, PID: holder(state)}
}

// IsRunning reports whether a server holds the lock of a state folder.
func IsRunning(state string) (bool, error) {
	file, err := os.Open(filepath.Join(state, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	lock := ownLock(unix.F_WRLCK)
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, lock); err != nil {
		return false, fmt.Errorf("asking for the lock %s: %w", file.Name(), err)
	}
	return lock.Type != unix.F_UNLCK, nil
}

// Release gives the lock up, also where a process that is just being started still has the file.
func (l *Lock) Release() error { return errors.Join(setLock(l.file, unix.F_UNLCK), l.file.Close()) }
