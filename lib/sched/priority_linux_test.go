package sched

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func sliceOf(t *testing.T, tid int) time.Duration {
	t.Helper()
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(attr.Runtime)
}

// The thread of a task that computes for long without a checkpoint gets a long slice, and has it at
// once in the turns after that, until many were short.
func TestComputingThreadsHaveLongSlices(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	err := s.Run(patient(t), func(task *Task) error {
		if s.priorities.mode != Slices {
			t.Skip("no slices here")
		}
		for spin() != 0 && task.Context().Err() == nil && sliceOf(t, 0) != computeSlice {
		}
		if got := sliceOf(t, 0); got != computeSlice {
			t.Errorf("computing: %v", got)
		}
		tid := unix.Gettid()
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		if len(entries) < 2 {
			t.Errorf("%d threads", len(entries))
		}
		woken := make(chan int)
		go func() { woken <- tid }()
		if _, err := Receive(task.Context(), s, woken); err != nil {
			return err
		}
		if got := sliceOf(t, 0); got != computeSlice {
			t.Errorf("computing again: %v", got)
		}
		for range trustShort + 1 {
			task.Block(func() {})
		}
		if got := sliceOf(t, 0); got == computeSlice && task.short >= trustShort {
			t.Error("a long slice for a short turn")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestChildrenHaveTheDefaultSlice(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	if err := s.Run(patient(t), func(*Task) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if s.priorities.mode != Slices {
		t.Skip("no slices here")
	}
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := sliceOf(t, cmd.Process.Pid); got == reactSlice || got == computeSlice {
		t.Errorf("child has a slice of %v", got)
	}
	in.Close()
	if err := s.WaitCmd(patient(t), cmd); err != nil {
		t.Fatal(err)
	}
}

func TestReactWithoutTasks(t *testing.T) {
	s := newTest(t, Config{})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.React()
	if s.priorities.mode != Slices {
		t.Skip("no slices here")
	}
	if got := sliceOf(t, 0); got != reactSlice {
		t.Errorf("slice of %v", got)
	}
}

// chrt -b is a person's choice too: only the slice is ours.
func TestBatchPolicyIsKept(t *testing.T) {
	s := newTest(t, Config{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // and never unlocked, so that the thread ends with the goroutine
		batch := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}
		if err := unix.SchedSetAttr(0, &batch, 0); err != nil {
			t.Error(err)
			return
		}
		p := newPriorities(PrioritiesAuto, s.log)
		if p.mode != Slices {
			return
		}
		for _, slice := range []time.Duration{computeSlice, reactSlice} {
			if err := p.slice(0, slice); err != nil {
				t.Error(err)
			}
			if attr, err := unix.SchedGetAttr(0, 0); err != nil || attr.Policy != unix.SCHED_BATCH ||
				time.Duration(attr.Runtime) != slice {
				t.Errorf("%+v, %v", attr, err)
			}
		}
	}()
	<-ended
}
