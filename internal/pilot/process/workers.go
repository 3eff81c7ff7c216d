package process

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A worker is a program that forks the processes of attempts, in the place of the pilot. Each of
// these has left the worker's family: its parent is the pilot, which reaps it as any other lead.
// Until the pilot adopts it, it stays in the session of the worker and waits, so that it can be
// told from what attempts leave behind.

// StartWorker starts a worker. It is ended by EndWorker, and by the kernel with the pilot.
func (t *Tree) StartWorker(path string, argv []string, attr *syscall.ProcAttr) (Lead, error) {
	l := Lead{pidfd: -1}
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &l.pidfd}
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	if l.pid, err = t.forkExec(path, argv, attr); err != nil {
		return Lead{}, err
	}
	t.workers[l.pid] = true
	return l, nil
}

// EndWorker kills a worker and waits for its end. What it has forked and was adopted goes on.
func (t *Tree) EndWorker(l Lead) {
	_ = unix.Kill(l.pid, unix.SIGKILL)
	_, _ = t.Reap(context.Background(), l)
	t.mu.Lock()
	delete(t.workers, l.pid)
	t.mu.Unlock()
}

var errNotForked = errors.New("it is no process that the worker has forked for its pilot")

// Adopt makes a process that a worker has forked, and that waits, the lead of an attempt that
// works in a folder.
func (t *Tree) Adopt(worker Lead, pid int, attempt uint64, folder string) (Lead, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	session, err := unix.Getsid(pid)
	if err != nil || session != worker.pid || pid == worker.pid {
		return Lead{}, errNotForked
	}
	l := Lead{pid: pid}
	if l.pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
		if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
			return Lead{}, fmt.Errorf("%w: %w", errNotForked, err)
		}
		l.pidfd = -1
	}
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		if l.pidfd >= 0 {
			_ = unix.Close(l.pidfd)
		}
		return Lead{}, fmt.Errorf("%w: %w", errNotForked, err)
	}
	t.leads[pid] = leader{attempt, folder}
	return l, nil
}

// waitsForAdoption reports whether a child of the pilot is one that a worker has forked. The caller
// holds the mutex.
func (t *Tree) waitsForAdoption(pid int) bool {
	if len(t.workers) == 0 {
		return false
	}
	session, _ := unix.Getsid(pid)
	return t.workers[session]
}

// PID is the number of the process.
func (l Lead) PID() int { return l.pid }

// Resident is the memory that a process has in RAM, in bytes; 0 if it is gone.
func (l Lead) Resident() int64 { return residentBytes([]int{l.pid}) }

// Readable waits until there is something to read from a descriptor, its other end is closed, or
// the time is over.
func (t *Tree) Readable(fd int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return t.sched.WaitReadable(ctx, fd)
}
