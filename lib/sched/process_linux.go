package sched

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pidInterval is how often children are looked at on systems without pidfds.
const pidInterval = 5 * time.Millisecond

// reap calls wait, which reaps p, when p has ended.
func (s *Scheduler) reap(ctx context.Context, p *os.Process, wait func() error) error {
	if err := s.waitEnd(ctx, p); err != nil {
		return err
	}
	return wait()
}

// waitEnd waits until p has ended without reaping it. The handle that os holds
// is waited for, so this opens no descriptor.
func (s *Scheduler) waitEnd(ctx context.Context, p *os.Process) error {
	var waitErr error
	err := p.WithHandle(func(fd uintptr) {
		if waitErr = lookAtChild(p.Pid, new(unix.Siginfo)); waitErr != nil {
			return
		}
		_, waitErr = s.waitFD(ctx, FD{Num: int(fd), Want: Readable, once: true})
	})
	if errors.Is(err, os.ErrNoHandle) {
		return s.waitEndByPolling(ctx, p.Pid)
	}
	return errors.Join(err, waitErr)
}

// WaitPid waits until the child process pid, started without [os/exec], has
// ended, and reaps it. pidfd is a descriptor for it, as [syscall.SysProcAttr]
// gives one, or -1 to open one for the wait if it needs one; the caller's own
// stays open. Where pid is no child, or has been reaped, the error wraps [syscall.ECHILD].
// At most one goroutine may wait for a process. In a process
// with one P up to sixteen waits of a scheduler block a thread each; where ctx
// ends one, its thread stays until the process has ended.
func (s *Scheduler) WaitPid(ctx context.Context, pid, pidfd int) (Exit, error) {
	err := lookAtChild(pid, new(unix.Siginfo))
	if err == nil {
		err = s.waitPidEnd(ctx, pid, pidfd)
	}
	if err != nil {
		return Exit{}, fmt.Errorf("wait for process %d: %w", pid, err)
	}
	var e Exit
	for {
		_, err = syscall.Wait4(pid, &e.Status, 0, &e.Rusage)
		if err == nil {
			return e, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return e, fmt.Errorf("reap process %d: %w", pid, err)
		}
	}
}

// lookAtChild fills in info if the child process has ended, and does not reap it. It fails where
// the process is no child: a wait for its end would not be followed by a status.
func lookAtChild(pid int, info *unix.Siginfo) error {
	if pid <= 0 { // would stand for a group of processes
		return unix.ECHILD
	}
	for {
		err := unix.Waitid(unix.P_PID, pid, info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

func (s *Scheduler) waitPidEnd(ctx context.Context, pid, pidfd int) error {
	if s.mayBlock() {
		return s.blockForEnd(ctx, pid)
	}
	return s.waitPidfd(ctx, pid, pidfd)
}

// mayBlock counts one more thread that blocks for the end of a process, if there
// may be one. With several Ps there may not: the runtime would leave the P of
// such a thread with it for 10 ms, and see to no descriptor meanwhile.
func (s *Scheduler) mayBlock() bool {
	if runtime.GOMAXPROCS(0) > 1 {
		return false
	}
	if s.builtin.blocked.Add(1) > maxBlockedWaits {
		s.builtin.blocked.Add(-1)
		return false
	}
	return true
}

// maxBlockedWaits bounds the threads that block for the ends of processes; the
// ends of further ones are waited for by pidfd.
const maxBlockedWaits = 16

// blockForEnd has a thread block in wait(2). The kernel wakes such a thread on
// the processor that the process just leaves; one that waits for a pidfd it may
// wake on another, behind what computes there. If ctx ends first, the thread
// blocks on until the process has ended or is reaped.
func (s *Scheduler) blockForEnd(ctx context.Context, pid int) error {
	ended := make(chan error, 1)
	go func() {
		defer s.builtin.blocked.Add(-1)
		runtime.Gosched() // a call that blocks keeps its P for a while, so what is ready goes first
		ended <- awaitEnd(pid)
	}()
	err, waitErr := Receive(ctx, s, ended)
	return errors.Join(err, waitErr)
}

func awaitEnd(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

func (s *Scheduler) waitPidfd(ctx context.Context, pid, pidfd int) error {
	if pidfd < 0 {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ENOSYS {
			return s.waitEndByPolling(ctx, pid)
		}
		if err != nil {
			return fmt.Errorf("pidfd_open: %w", err)
		}
		defer unix.Close(fd)
		pidfd = fd
	}
	_, err := s.waitFD(ctx, FD{Num: pidfd, Want: Readable, once: true})
	return err
}

// waitEndByPolling serves kernels before 5.4.
func (s *Scheduler) waitEndByPolling(ctx context.Context, pid int) error {
	ends, err := s.builtin.pid.get(func() (*Handle[int, struct{}], error) {
		noPidfd.Do(func() { s.log.Info("sched: no pidfds here; ends of processes are polled for", "interval", pidInterval) })
		return Register(s, Kind[int, struct{}]{Name: "pid", Poll: pollPids, Interval: pidInterval}), nil
	})
	if err == nil {
		_, err = ends.Wait(ctx, pid)
	}
	return err
}

var noPidfd sync.Once

// pollPids looks for children that have ended and leaves them to be reaped.
func pollPids(waiting []*Request[int, struct{}]) {
	for _, r := range waiting {
		var info unix.Siginfo
		if err := lookAtChild(r.Value, &info); err != nil || info.Signo != 0 {
			r.Done(struct{}{}, err)
		}
	}
}
