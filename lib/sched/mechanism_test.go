package sched

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// While a task waits, another one has its slot; nobody lends it, and there is no other.
func TestTaskThatWaitsGivesItsSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inVirtualTime(Config{Slots: 1, Spare: 1, Priorities: NoPriorities})
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		requests := make(chan *Request[int, int], 1)
		h := Register(s, Kind[int, int]{Name: "callback", Group: func(r *Request[int, int], joined bool) {
			if joined {
				requests <- r
			}
		}})
		waiting := s.Go(ctx, func(task *Task) error { _, err := h.Wait(task.Context(), 1); return err })
		r := <-requests
		if err := s.Go(ctx, func(*Task) error { r.Done(1, nil); return nil }).Wait(ctx); err != nil {
			t.Errorf("the other task: %v", err)
		}
		if err := waiting.Wait(ctx); err != nil {
			t.Error(err)
		}
	})
}

// Where events have come soon after their requests, a waiter polls first and blocks only then.
func TestPollsBeforeItBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inVirtualTime(Config{})
		defer s.Close()
		wake, polls, blocks := make(chan struct{}, 1), 0, 0
		h := Register(s, Kind[int, int]{
			Name: "soon",
			Poll: func(waiting []*Request[int, int]) {
				if polls++; polls == 3 {
					waiting[0].Done(1, nil)
				}
			},
			Block:   func(time.Duration) { blocks++; polls = 2; wake <- struct{}{}; <-wake },
			Unblock: func() {},
		})
		feed(&h.src.adapt, 100, 3*time.Microsecond, time.Second)
		if _, err := h.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if blocks > 0 {
			t.Error("it blocked before the third poll")
		}
	})
}

// Poll is given all requests that wait, to ask for them by one call.
func TestPollIsGivenAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5
		s := inVirtualTime(Config{})
		defer s.Close()
		h := Register(s, Kind[int, int]{Name: "together", Eager: -1, Poll: func(waiting []*Request[int, int]) {
			if len(waiting) == n {
				for len(waiting) > 0 {
					waiting[0].Done(1, nil)
					waiting = waiting[1:]
				}
			}
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ended := make(chan error, n)
		for k := range n {
			go func() { _, err := h.Wait(ctx, k); ended <- err }()
		}
		for range n {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// An event that came just before the arming took effect is found by the poll after it, and nobody
// blocks for it.
func TestEventBeforeTheArmingIsFoundByThePollAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inVirtualTime(Config{})
		defer s.Close()
		there, blocks := false, 0
		h := Register(s, Kind[int, int]{
			Name: "armed",
			Poll: func(waiting []*Request[int, int]) {
				if there {
					waiting[0].Done(1, nil)
				}
			},
			Arm:     func() bool { there = true; return true },
			Block:   func(time.Duration) { blocks++ },
			Unblock: func() {},
		})
		if _, err := h.Wait(t.Context(), 1); err != nil || blocks > 0 {
			t.Errorf("%v, after %d blocks", err, blocks)
		}
	})
}
