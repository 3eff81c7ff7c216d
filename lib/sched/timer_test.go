package sched

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimersFollowVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		start := time.Now()
		if err := s.Sleep(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("slept %v: %v", time.Since(start), err)
		}
		if err := s.WaitUntil(t.Context(), start); err != nil || time.Since(start) != time.Hour {
			t.Errorf("past time: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.WaitUntil(ctx, start.Add(5*time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTasksInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Slots: 1})
		defer s.Close()
		start := time.Now()
		for range 10 {
			s.Go(t.Context(), func(task *Task) error { return s.Sleep(task.Context(), time.Minute) })
		}
		last := s.Go(t.Context(), func(task *Task) error { return s.Sleep(task.Context(), time.Minute) })
		if err := last.Wait(t.Context()); err != nil || time.Since(start) != time.Minute {
			t.Errorf("%v, %v", time.Since(start), err)
		}
	})
}

func TestReceiveAndCall(t *testing.T) {
	s := newTest(t, Config{})
	ch := make(chan int, 1)
	ch <- 3
	if v, err := Receive(t.Context(), s, ch); v != 3 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	close(ch)
	if _, err := Receive(t.Context(), s, ch); !errors.Is(err, ErrChannelClosed) {
		t.Errorf("got %v", err)
	}
	failed := errors.New("failed")
	v, err := Call(t.Context(), s, func(done func(int, error)) {
		go func() { done(4, failed); done(5, nil) }()
	})
	if v != 4 || !errors.Is(err, failed) {
		t.Errorf("%v, %v", v, err)
	}
}
