package sched

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

func startCommand(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestWaitProcessReturnsStatusAndUsage(t *testing.T) {
	s := newTest(t, Config{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			cmd := startCommand(t, "exit 7")
			state, err := s.WaitProcess(patient(t), cmd.Process)
			if err != nil {
				t.Errorf("process %d: %v", i, err)
				return
			}
			if state.ExitCode() != 7 || state.SysUsage() == nil {
				t.Errorf("process %d: %v", i, state)
			}
		})
	}
	wg.Wait()
}

func TestWaitProcessCancelledLeavesProcess(t *testing.T) {
	s := newTest(t, Config{})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := os.StartProcess("/bin/cat", []string{"cat"}, &os.ProcAttr{Files: []*os.File{r, os.Stdout, os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.WaitProcess(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	w.Close()
	state, err := s.WaitProcess(patient(t), p)
	if err != nil || !state.Success() {
		t.Fatalf("%v, %v", state, err)
	}
}

func TestWaitCmd(t *testing.T) {
	s := newTest(t, Config{})
	var failed *exec.ExitError
	if err := s.WaitCmd(patient(t), startCommand(t, "exit 2")); !errors.As(err, &failed) || failed.ExitCode() != 2 {
		t.Fatalf("got %v", err)
	}
}

func TestWaitPid(t *testing.T) {
	s := newTest(t, Config{})
	for _, own := range []bool{false, true} {
		fd := -1
		attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{}}
		if own {
			attr.Sys.PidFD = &fd
		}
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "kill -TERM $$"}, attr)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.WaitPid(patient(t), pid, fd)
		if err != nil || e.Status.Signal() != syscall.SIGTERM {
			t.Fatalf("%+v, %v", e, err)
		}
		if own {
			syscall.Close(fd)
		}
	}
}

// onOneProcessor has the test run as a process does in which waits may block.
func onOneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestWaitPidOfMoreThanMayBlock(t *testing.T) {
	onOneProcessor(t)
	s := newTest(t, Config{})
	var waits sync.WaitGroup
	for i := range 2 * maxBlockedWaits {
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exit 5"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		waits.Go(func() {
			if e, err := s.WaitPid(patient(t), pid, -1); err != nil || e.Status.ExitStatus() != 5 {
				t.Errorf("process %d: %+v, %v", i, e, err)
			}
		})
	}
	waits.Wait()
}

func TestWaitPidCancelledLeavesProcess(t *testing.T) {
	onOneProcessor(t)
	s := newTest(t, Config{})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pid, err := syscall.ForkExec("/bin/cat", []string{"cat"}, &syscall.ProcAttr{Files: []uintptr{r.Fd(), 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 * maxBlockedWaits {
		if _, err := s.WaitPid(ctx, pid, -1); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
	w.Close()
	if e, err := s.WaitPid(patient(t), pid, -1); err != nil || e.Status.ExitStatus() != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
}

func TestWaitEndByPolling(t *testing.T) {
	s := newTest(t, Config{})
	cmd := startCommand(t, "exit 3")
	if err := s.waitEndByPolling(patient(t), cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if state, err := cmd.Process.Wait(); err != nil || state.ExitCode() != 3 {
		t.Fatalf("%v, %v", state, err)
	}
}

// A process that is no child of this one can't be reaped, which is said at once.
func TestWaitForAProcessThatIsNoChildFails(t *testing.T) {
	s := newTest(t, Config{})
	other, err := os.FindProcess(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	for _, procs := range []int{1, 2} {
		before := runtime.GOMAXPROCS(procs)
		for _, pid := range []int{os.Getppid(), os.Getpid(), 0, -1} {
			if _, err := s.WaitPid(patient(t), pid, -1); !errors.Is(err, syscall.ECHILD) {
				t.Errorf("WaitPid of %d with %d Ps: %v", pid, procs, err)
			}
		}
		if _, err := s.WaitProcess(patient(t), other); !errors.Is(err, syscall.ECHILD) {
			t.Errorf("WaitProcess with %d Ps: %v", procs, err)
		}
		runtime.GOMAXPROCS(before)
	}
}
