package sched

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTasksNeverExceedSlots(t *testing.T) {
	s := newTest(t, Config{Slots: 2})
	var running, most atomic.Int32
	var tasks []*Task
	for range 16 {
		tasks = append(tasks, s.Go(t.Context(), func(t *Task) error {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			for range 1000 {
				yieldProcessor()
			}
			running.Add(-1)
			return nil
		}))
	}
	for _, task := range tasks {
		if err := task.Wait(patient(t)); err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 2 {
		t.Errorf("%d tasks at once on 2 slots", most.Load())
	}
}

func TestEqualsTakeTurnsAtCheckpoints(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	var mu sync.Mutex
	var turns []int
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		for i := range 3 {
			if !slices.Contains(turns, i) {
				return false
			}
		}
		return true
	}
	var tasks []*Task
	for i := range 3 {
		tasks = append(tasks, s.Go(patient(t), func(t *Task) error {
			for t.Context().Err() == nil && !all() {
				mu.Lock()
				if len(turns) == 0 || turns[len(turns)-1] != i {
					turns = append(turns, i)
				}
				mu.Unlock()
				t.Checkpoint()
			}
			return t.Context().Err()
		}))
	}
	for _, task := range tasks {
		if err := task.Wait(patient(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestHigherPriorityTakesTheSlotAtACheckpoint(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	started := make(chan struct{})
	var high atomic.Bool
	low := s.Go(patient(t), func(t *Task) error {
		close(started)
		for !high.Load() && t.Context().Err() == nil {
			t.Checkpoint()
		}
		return t.Context().Err()
	})
	<-started
	if err := s.Run(patient(t), func(*Task) error { high.Store(true); return nil }, AtPriority(1)); err != nil {
		t.Fatal(err)
	}
	if err := low.Wait(patient(t)); err != nil {
		t.Fatal(err)
	}
}

func TestWokenTaskRunsOverTheSlots(t *testing.T) {
	s := newTest(t, Config{Slots: 1, Spare: 2})
	event := make(chan int)
	waiting := make(chan struct{})
	woken := s.Go(patient(t), func(t *Task) error {
		close(waiting)
		_, err := Receive(t.Context(), s, event)
		return err
	})
	<-waiting
	stop := make(chan struct{})
	computing := make(chan struct{})
	other := s.Go(patient(t), func(*Task) error { // never checkpoints
		close(computing)
		<-stop
		return nil
	})
	<-computing
	event <- 1
	if err := woken.Wait(patient(t)); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if err := other.Wait(patient(t)); err != nil {
		t.Fatal(err)
	}
}

func TestTaskIsNotRunWhenItsContextEndsFirst(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	stop := make(chan struct{})
	running := make(chan struct{})
	first := s.Go(t.Context(), func(*Task) error { close(running); <-stop; return nil })
	<-running
	ctx, cancel := context.WithCancel(t.Context())
	second := s.Go(ctx, func(*Task) error { t.Error("run"); return nil })
	cancel()
	if err := second.Wait(patient(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(stop)
	<-first.Done()
}

func TestTooManyTasks(t *testing.T) {
	s := newTest(t, Config{Slots: 1, Tasks: 1})
	stop := make(chan struct{})
	first := s.Go(t.Context(), func(*Task) error { <-stop; return nil })
	if err := s.Go(t.Context(), func(*Task) error { return nil }).Wait(patient(t)); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v", err)
	}
	close(stop)
	<-first.Done()
}

func TestRunInsideATaskIsPartOfIt(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	err := s.Run(patient(t), func(outer *Task) error {
		return s.Run(outer.Context(), func(inner *Task) error {
			if inner != outer {
				t.Error("another task")
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The context of a task is often handed on. Waits of other goroutines with it leave the
// slot alone, while the task computes, while it waits, and after its end.
func TestTaskContextInAnotherGoroutineKeepsTheSlot(t *testing.T) {
	for _, p := range []Priorities{PrioritiesAuto, Nice, NoPriorities} {
		s := newTest(t, Config{Slots: 1, Priorities: p})
		var ctx context.Context
		slept := make(chan error)
		sleep := func() { slept <- s.Sleep(ctx, time.Microsecond) }
		err := s.Run(patient(t), func(task *Task) error {
			ctx = task.Context()
			go sleep()
			if err := <-slept; err != nil {
				return err
			}
			if _, running, _ := s.slots.sizes(); running != 1 {
				t.Errorf("priorities %d: %d tasks running", p, running)
			}
			go sleep()
			if _, err := Receive(ctx, s, slept); err != nil {
				return err
			}
			return s.Sleep(ctx, time.Microsecond)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sleep(ctx, time.Microsecond); err != nil {
			t.Fatal(err)
		}
		go sleep()
		<-slept
		if _, running, queued := s.slots.sizes(); running != 0 || queued != 0 {
			t.Errorf("priorities %d: %d tasks running, %d queued after the end", p, running, queued)
		}
	}
}

// A task that is sent off its slot at a checkpoint while it holds a lock waits for a slot,
// and those with slots may wait for the lock.
func TestLockHeldAcrossACheckpointDoesNotStopAllTasks(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	var mu sync.Mutex
	locked := make(chan struct{})
	var wanted atomic.Bool
	holder := s.Go(patient(t), func(t *Task) error {
		mu.Lock()
		defer mu.Unlock()
		close(locked)
		for !wanted.Load() {
			t.Checkpoint()
		}
		return nil
	})
	<-locked
	err := s.Run(patient(t), func(*Task) error {
		if s.priorities.mode == NoPriorities {
			return nil // nobody can tell there
		}
		wanted.Store(true)
		mu.Lock()
		defer mu.Unlock()
		return nil
	})
	wanted.Store(true)
	if err := errors.Join(err, holder.Wait(patient(t))); err != nil {
		t.Fatal(err)
	}
}

func TestCloseWaitsForTasksThatRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Slots: 1})
		stop, closed := make(chan struct{}), make(chan struct{})
		go func() { _ = s.Run(context.Background(), func(*Task) error { <-stop; return nil }) }()
		synctest.Wait()
		go func() { s.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed before the task has ended")
		default:
		}
		close(stop)
		<-closed
	})
}

// What a process had before its tasks it has after them, whoever set it.
func TestProcessHasItsProcessorsBackAfterClose(t *testing.T) {
	original := runtime.GOMAXPROCS(0)
	t.Cleanup(runtime.SetDefaultGOMAXPROCS)
	for _, before := range []int{1, original, original + 3} {
		runtime.GOMAXPROCS(before)
		s, other := New(Config{Slots: 3}), New(Config{Slots: 2})
		for _, s := range []*Scheduler{s, other} {
			if err := s.Run(patient(t), func(*Task) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if got := runtime.GOMAXPROCS(0); got != 5 {
			t.Errorf("%d Ps for 3 slots", got)
		}
		s.Close()
		other.Close()
		if got := runtime.GOMAXPROCS(0); got != before {
			t.Errorf("%d Ps, %d before", got, before)
		}
	}
}

// A program that computes in tasks now and then has neither spare Ps nor short slices in
// between.
func TestSparePsAndShortSlicesGoSomeTimeAfterTheLastTask(t *testing.T) {
	s := newTest(t, Config{Slots: 3})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, own := runtime.GOMAXPROCS(0), sliceOf(t, 0)
	for range 2 {
		if err := s.Run(patient(t), func(*Task) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if s.priorities.mode == Slices && sliceOf(t, 0) != reactSlice {
			t.Error("no short slice beside tasks")
		}
		until(t, s, "rest", func() bool { return s.tender.Load() == nil })
		if got := runtime.GOMAXPROCS(0); got != before {
			t.Errorf("%d Ps, %d before", got, before)
		}
		if got := sliceOf(t, 0); got != own {
			t.Errorf("a slice of %v, %v before", got, own)
		}
	}
}

// TestTasksThatWaitShareSlots is the promise that many tasks that compute and
// wait in turn need no more slots than processors.
func TestTasksThatWaitShareSlots(t *testing.T) {
	s := newTest(t, Config{Slots: 2})
	d := newDevice(t, seeded(t))
	h := Register(s, d.kind(Adaptive, true))
	var tasks []*Task
	for i := range 32 {
		tasks = append(tasks, s.Go(patient(t), func(t *Task) error {
			for j := range 10 {
				n := i*10 + j
				go d.happen(n)
				if _, err := h.Wait(t.Context(), n); err != nil {
					return err
				}
				for range 100 {
					t.Checkpoint()
				}
			}
			return nil
		}))
	}
	for _, task := range tasks {
		if err := task.Wait(patient(t)); err != nil {
			t.Error(err)
		}
	}
	if total, running, queued := s.slots.sizes(); total != 2 || running != 0 || queued != 0 {
		t.Errorf("%d slots, %d running, %d queued", total, running, queued)
	}
}

func TestCheckpointsPoll(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	var polls atomic.Int32
	h := Register(s, Kind[int, int]{
		Name: "polled", Interval: time.Microsecond, Reaction: time.Hour,
		Poll: func(waiting []*Request[int, int]) {
			if polls.Add(1) > 10 {
				waiting[0].Done(1, nil)
			}
		},
	})
	stop := compute(s, 1)
	until(t, s, "computing", func() bool { _, running, _ := s.slots.sizes(); return running == 1 })
	if _, err := h.Wait(patient(t), 1); err != nil {
		t.Error(err)
	}
	stop()
}

func TestEverySchedulingModeRuns(t *testing.T) {
	for _, p := range []Priorities{PrioritiesAuto, Slices, Nice, NoPriorities} {
		s := newTest(t, Config{Priorities: p, Slots: 2})
		var tasks []*Task
		for range 4 {
			tasks = append(tasks, s.Go(patient(t), func(task *Task) error {
				for range 100 {
					task.Checkpoint()
				}
				return s.Sleep(task.Context(), time.Microsecond)
			}))
		}
		for _, task := range tasks {
			if err := task.Wait(patient(t)); err != nil {
				t.Error(err)
			}
		}
		if err := s.Run(patient(t), func(*Task) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkCheckpoint(b *testing.B) {
	s := New(Config{})
	defer s.Close()
	_ = s.Run(b.Context(), func(t *Task) error {
		for b.Loop() {
			t.Checkpoint()
		}
		return nil
	})
}

// TestQueueingManyTasksIsNotQuadratic counts on the ratio of two processor times of one
// thread, which other programs on the machine do not lengthen.
func TestQueueingManyTasksIsNotQuadratic(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	queueAll := func(n int) time.Duration {
		sl := &slots{}
		sl.resize(1, 1, 0)
		running := bareTask(0)
		sl.start(running, 0)
		tasks := make([]*Task, n)
		for i := range tasks {
			tasks[i] = bareTask(i % 2)
		}
		begin := processorTime()
		for i, task := range tasks {
			sl.start(task, int64(i))
		}
		for i, task := range tasks {
			if i%2 == 0 {
				sl.abandon(task, int64(n))
			}
		}
		for range n / 2 {
			next := sl.head()
			sl.end(running, int64(n), allOfIt)
			running = next
		}
		return processorTime() - begin
	}
	if few, many := queueAll(2500), queueAll(40_000); many > 100*few {
		t.Errorf("16 times as many tasks took %v instead of %v", many, few)
	}
}
