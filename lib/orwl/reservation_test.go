//go:build unix

package orwl

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"fairway/lib/seed"
)

// An insertion that its task gives up while it waits behind another one leaves
// nothing behind.
func TestInsertGivenUpBehindALatch(t *testing.T) {
	l := newLocation(t, "l", 8)
	s, p := served(t, "tcp", l)
	m := mirror(t, p, "l")
	var spanning Handle
	other, err := localOwner{}.reserve(background, []Posting{spanning.Writing(l)})
	must(t, err)
	ctx, cancel := context.WithCancel(background)
	done := make(chan error, 1)
	go func() { done <- Insert(ctx, new(Handle).Writing(m)) }()
	waitFor(t, func() bool { return reservations(s) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return reservations(s) == 0 })
	other.settle(true)
	must(t, spanning.Acquire(background))
	must(t, spanning.Release())
	write(t, l, func([]byte) {})
	waitFor(t, func() bool { return l.Waiting() == 0 })
}

// reservations counts those that a server has not settled.
func reservations(s *Server) (n int) {
	for _, session := range sessionsOf(s) {
		n += session.Unsettled()
	}
	return n
}

// Insertions in several locations of another process, given up at random
// moments: the locations are free in the end.
func TestInsertGivenUpAtRandom(t *testing.T) {
	rng := seed.Source(t)
	a, b := newLocation(t, "a", 8), newLocation(t, "b", 8)
	_, p := served(t, "tcp", a, b)
	ma, mb := mirror(t, p, "a"), mirror(t, p, "b")
	var all sync.WaitGroup
	for range 4 {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		all.Go(func() {
			for range rounds(150) {
				ctx, cancel := context.WithTimeout(background, time.Duration(own.IntN(300))*time.Microsecond)
				err := insertBoth(ctx, []Resource{ma, mb})
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	write(t, a, func([]byte) {})
	write(t, b, func([]byte) {})
	waitFor(t, func() bool { return a.Waiting()+b.Waiting() == 0 })
}
