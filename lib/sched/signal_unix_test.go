//go:build unix

package sched

import (
	"context"
	"errors"
	"syscall"
	"testing"
)

func TestSignals(t *testing.T) {
	s := newTest(t, Config{})
	g := s.Signals(syscall.SIGUSR1, syscall.SIGUSR2)
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		if got, err := g.Wait(patient(t)); got != sig || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := g.Wait(ctx); ended <- err }()
	until(t, s, "waiting", func() bool { return members(s, "signal") == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	go func() { _, err := g.Wait(t.Context()); ended <- err }()
	until(t, s, "waiting", func() bool { return members(s, "signal") == 1 })
	g.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}
