package sched

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// Tasks that hold all slots sleep outside the scheduler for a moment, again and again. They leave
// the processors idle, and nobody waits until they have ended.
func TestShortBlockingCallsKeepNobodyFromASlot(t *testing.T) {
	s := newTest(t, Config{Slots: 2})
	var third atomic.Bool
	begun := make(chan struct{}, 2)
	sleeps := func(*Task) error {
		begun <- struct{}{}
		for range 500 {
			<-time.After(5 * time.Millisecond)
			if third.Load() {
				return nil
			}
		}
		return errors.New("a third task did not start meanwhile")
	}
	a, b := s.Go(patient(t), sleeps), s.Go(patient(t), sleeps)
	<-begun
	<-begun
	if !s.priorities.threads() {
		third.Store(true) // nobody can tell there
	}
	err := s.Run(patient(t), func(*Task) error { third.Store(true); return nil })
	if err := errors.Join(err, a.Wait(patient(t)), b.Wait(patient(t))); err != nil {
		t.Error(err)
	}
}

func TestBlockGivesTheSlotBack(t *testing.T) {
	for _, p := range []Priorities{PrioritiesAuto, Nice, NoPriorities} {
		s := newTest(t, Config{Slots: 1, Priorities: p})
		err := s.Run(patient(t), func(task *Task) error {
			var err error
			task.Block(func() {
				task.Checkpoint()
				err = errors.Join(s.Sleep(task.Context(), time.Microsecond),
					s.Run(task.Context(), func(inner *Task) error {
						if inner == task {
							t.Error("computes as a part of a task without a slot")
						}
						return nil
					}))
				task.Block(func() {})
			})
			if _, running, _ := s.slots.sizes(); running != 1 {
				t.Errorf("priorities %d: %d tasks running", p, running)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestPanicInBlockLeavesTheTaskWithItsSlot(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	err := s.Run(patient(t), func(task *Task) error {
		func() {
			defer func() { _ = recover() }()
			task.Block(func() { panic("boom") })
		}()
		if _, running, _ := s.slots.sizes(); running != 1 {
			t.Errorf("%d tasks running", running)
		}
		task.Checkpoint()
		return s.Sleep(task.Context(), time.Microsecond)
	})
	if err != nil {
		t.Error(err)
	}
}
