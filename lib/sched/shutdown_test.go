package sched

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Of two tasks on one slot, one was sent off it with the lock that the other wants, which has
// the slot. That ends while the scheduler is closed too, also where nobody can tell that a task
// blocks.
func TestCloseEndsTasksThatWaitForEachOther(t *testing.T) {
	for _, p := range []Priorities{PrioritiesAuto, Nice, NoPriorities} {
		s := New(Config{Slots: 1, Priorities: p})
		var mu sync.Mutex
		locked, queued := make(chan struct{}), make(chan struct{})
		var wanted atomic.Bool
		holder := s.Go(t.Context(), func(task *Task) error {
			mu.Lock()
			defer mu.Unlock()
			close(locked)
			for !wanted.Load() {
				task.Checkpoint()
			}
			return nil
		})
		<-locked
		other := s.Go(t.Context(), func(*Task) error {
			close(queued)
			<-s.closing
			wanted.Store(true)
			mu.Lock()
			defer mu.Unlock()
			return nil
		})
		<-queued
		if err := s.Shutdown(patient(t)); err != nil {
			t.Fatalf("priorities %d: %v", p, err)
		}
		if err := errors.Join(holder.Wait(t.Context()), other.Wait(t.Context())); err != nil {
			t.Errorf("priorities %d: %v", p, err)
		}
	}
}

func TestShutdownGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Slots: 1, Priorities: NoPriorities})
		stop := make(chan struct{})
		task := s.Go(t.Context(), func(*Task) error { <-stop; return nil })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 task") {
			t.Errorf("got %v", err)
		}
		if err := s.Go(t.Context(), func(*Task) error { return nil }).Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("a new task: %v", err)
		}
		close(stop)
		<-task.Done()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("after the last task: %v", err)
		}
		s.Close()
	})
}

// What was accepted before Close is run, so that nobody waits for its deeds in vain.
func TestCloseRunsTheTasksThatHaveNoSlotYet(t *testing.T) {
	for _, p := range []Priorities{PrioritiesAuto, Nice, NoPriorities} {
		for name, other := range map[string]func(s *Scheduler, f func(*Task) error) error{
			"go": func(s *Scheduler, f func(*Task) error) error { return s.Go(t.Context(), f).Wait(t.Context()) },
			"low": func(s *Scheduler, f func(*Task) error) error {
				return s.Go(t.Context(), f, AtPriority(-1)).Wait(t.Context())
			},
			"high": func(s *Scheduler, f func(*Task) error) error {
				return s.Go(t.Context(), f, AtPriority(1)).Wait(t.Context())
			},
			"run": func(s *Scheduler, f func(*Task) error) error { return s.Run(t.Context(), f) },
		} {
			s := New(Config{Slots: 1, Priorities: p})
			begun, told := make(chan struct{}), make(chan struct{})
			first := s.Go(t.Context(), func(*Task) error { close(begun); <-told; return nil })
			<-begun
			errs := make(chan error, 1)
			go func() { errs <- other(s, func(*Task) error { close(told); return nil }) }()
			for s.tasksThere() < 2 {
				yieldProcessor()
			}
			if err := s.Shutdown(patient(t)); err != nil {
				t.Fatalf("%s, priorities %d: %v", name, p, err)
			}
			<-first.Done()
			if err := <-errs; err != nil && !errors.Is(err, ErrClosed) {
				t.Errorf("%s, priorities %d: %v", name, p, err)
			}
		}
	}
}

func (s *Scheduler) tasksThere() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}
