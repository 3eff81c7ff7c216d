package sched

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Exit is how a process ended and what it used.
type Exit struct {
	Status syscall.WaitStatus
	Rusage syscall.Rusage
}

// WaitProcess waits until the child process p has ended, reaps it and returns
// its state, which holds the resource usage too. No thread is blocked for it. If
// ctx ends first the process is left alone, and may be waited for again. At most
// one goroutine may wait for a process, as with [os.Process.Wait].
func (s *Scheduler) WaitProcess(ctx context.Context, p *os.Process) (*os.ProcessState, error) {
	var state *os.ProcessState
	err := s.reap(ctx, p, func() (err error) { state, err = p.Wait(); return err })
	if err != nil {
		return nil, fmt.Errorf("wait for process %d: %w", p.Pid, err)
	}
	return state, nil
}

// WaitCmd waits until the process of a started command has ended and then does
// what [exec.Cmd.Wait] does. That may block for as long as other processes hold
// the pipes that cmd copies from; see [exec.Cmd.WaitDelay].
func (s *Scheduler) WaitCmd(ctx context.Context, cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return errors.New("wait for command: not started")
	}
	return s.reap(ctx, cmd.Process, cmd.Wait)
}
