package sched

import (
	"errors"
	"runtime"
	"testing"
)

// A task that ends its goroutine, as a failed assertion does, has not succeeded. Its slot is
// free again.
func TestTaskThatEndsItsGoroutineHasNotSucceeded(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	exits := s.Go(patient(t), func(*Task) error {
		runtime.Goexit()
		return nil
	})
	if err := exits.Wait(patient(t)); !errors.Is(err, ErrExited) {
		t.Fatal(err)
	}
	if err := s.Run(patient(t), func(*Task) error { return nil }); err != nil {
		t.Fatal(err)
	}
}
