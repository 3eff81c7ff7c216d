package sched

import (
	"testing"
	"testing/synctest"
	"time"
)

func (t *tender) looked() int {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.looks
}

// pass lets time pass in a bubble.
func pass(s *Scheduler, d time.Duration, t *testing.T) {
	t.Helper()
	if err := s.Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// A scheduler that has nothing to look after wakes the process hardly ever: neither where React is
// on, nor beside tasks that wait.
func TestNobodyLooksWhereNothingHappens(t *testing.T) {
	t.Run("React", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{})
			defer s.Close()
			s.React()
			pass(s, 10*time.Minute, t)
			if n := s.tender.Load().looked(); n > 600 { // some more than 120, since other tests start threads
				t.Errorf("%d looks in ten minutes", n)
			}
		})
	})
	t.Run("a task that waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{Slots: 1})
			defer s.Close()
			task := s.Go(t.Context(), func(task *Task) error { return s.Sleep(task.Context(), 10*time.Minute) })
			pass(s, 9*time.Minute, t)
			if n := s.tender.Load().looked(); n > 600 {
				t.Errorf("%d looks in nine minutes", n)
			}
			if err := task.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
}

// Where nothing has happened for long, the end of a wait and the beginning of a turn are followed by
// a look as soon as elsewhere.
func TestWhatHappensIsFollowedByALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Slots: 1})
		defer s.Close()
		s.React()
		for range 3 {
			pass(s, 5*tendRest/2, t)
			before := s.tender.Load().looked()
			pass(s, 2*tendEvery, t) // the pass before has just ended
			if after := s.tender.Load().looked(); after == before {
				t.Error("nobody looked after a wait had ended")
			}
		}
		pass(s, 5*tendRest/2, t)
		leave := make(chan struct{})
		task := s.Go(t.Context(), func(*Task) error { <-leave; return nil })
		pass(s, tendRest, t)
		before := s.tender.Load().looked()
		pass(s, 10*tendEvery, t)
		if n := s.tender.Load().looked() - before; n < 9 {
			t.Errorf("%d looks in a second beside a turn", n)
		}
		close(leave)
		if err := task.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
