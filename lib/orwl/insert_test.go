package orwl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"fairway/lib/seed"
)

// Tasks that insert atomically, from as many goroutines, leave an order
// without a cycle and all come to an end.
func TestInsertIsAtomic(t *testing.T) {
	rng := seed.Source(t)
	for range rounds(100) {
		locs := []*Location{newLocation(t, "a", 8), newLocation(t, "b", 8), newLocation(t, "c", 8), newLocation(t, "d", 8)}
		var inserted, ended sync.WaitGroup
		checked := make(chan struct{})
		for i := range 6 {
			perm, modes := rng.Perm(len(locs))[:3], rng.IntN(8)
			inserted.Add(1)
			ended.Go(func() {
				handles := make(Handles, 3)
				postings := make([]Posting, 3)
				for k := range handles {
					handles[k] = &Handle{Name: fmt.Sprint("task ", i)}
					postings[k] = Posting{handle: handles[k], resource: locs[perm[k]], mode: Mode(modes >> k & 1)}
				}
				must(t, Insert(background, postings...))
				inserted.Done()
				<-checked
				must(t, handles.Acquire(background))
				must(t, handles.Release())
			})
		}
		inserted.Wait()
		must(t, OrderOf(locs...).Check())
		close(checked)
		ended.Wait()
	}
}

func TestInsertAllOrNone(t *testing.T) {
	a, b := newLocation(t, "a", 8), newLocation(t, "b", 8, MaxRequests(1))
	var blocker, x, y Handle
	must(t, blocker.ReadRequest(b))
	if err := Insert(background, x.Writing(a), y.Writing(b)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if a.Waiting() != 0 {
		t.Fatal("one request was inserted alone")
	}
	must(t, x.ReadRequest(a))
	if err := Insert(background, y.Reading(a), new(Handle).Writing(a)); !errors.Is(err, ErrSelfConflict) {
		t.Fatal(err)
	}
}

// While an insertion that spans processes is under way, others stand behind it.
func TestLatchPostpones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocation(t, "l", 8)
		var first, second, third, spanning Handle
		reserved, err := localOwner{}.reserve(background, []Posting{spanning.Writing(l)})
		must(t, err)
		must(t, first.ReadRequest(l))
		must(t, second.ReadRequest(l))
		must(t, second.Cancel())
		done := make(chan error, 1)
		go func() { done <- Insert(background, third.Reading(l)) }()
		ctx, cancel := context.WithCancel(background)
		cancel()
		if err := Insert(ctx, new(Handle).Reading(l)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		synctest.Wait()
		must(t, spanning.Acquire(background))
		reserved.settle(true)
		must(t, <-done)
		if granted(t, &first) || granted(t, &third) || l.Waiting() != 3 {
			t.Fatal("the postponed requests do not stand behind the insertion")
		}
		must(t, spanning.Release())
		if !granted(t, &first) || !granted(t, &third) {
			t.Fatal("the postponed requests were lost")
		}
	})
}

func TestGateRefusesDeadlock(t *testing.T) {
	a, b := newLocation(t, "a", 8), newLocation(t, "b", 8)
	gate := NewGate(2)
	var aw, br, bw, ar Handle
	must(t, gate.Insert(background, "one", aw.Writing(a).At(0), br.Reading(b).At(1)))
	var deadlock *DeadlockError
	err := gate.Insert(background, "two", bw.Writing(b).At(0), ar.Reading(a).At(1))
	if !errors.As(err, &deadlock) || len(deadlock.Cycle) != 2 {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	if err := gate.Wait(background); !errors.As(err, &deadlock) {
		t.Fatalf("got %v", err)
	}
	if a.Waiting()+b.Waiting() != 0 {
		t.Fatal("requests were inserted")
	}
}

// Locations are told apart also where they have the same name.
func TestGateTellsNamesakesApart(t *testing.T) {
	a, b := newLocation(t, "x", 8), newLocation(t, "x", 8)
	gate := NewGate(2)
	var first, second, third Handle
	must(t, gate.Insert(background, "one", first.Writing(a).At(0), second.Writing(b).At(2)))
	must(t, gate.Insert(background, "two", third.Writing(a).At(1)))
	if o := OrderOf(a, b); len(o["x"]) != 2 || len(o["x (2)"]) != 1 {
		t.Fatalf("the order is %v", o)
	}
}

func TestGateHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocation(t, "l", 8)
		gate := NewGate(2)
		var early, late Pair
		must(t, gate.Insert(background, "early", early.Writing(l).At(2)))
		opened := false
		go func() {
			must(t, gate.Wait(background))
			opened = true
		}()
		synctest.Wait()
		if opened || l.Waiting() != 0 {
			t.Fatal("the gate is open before all have come")
		}
		must(t, gate.Insert(background, "late", late.Writing(l).At(1)))
		synctest.Wait()
		if !opened || granted(t, &early) || !granted(t, &late) {
			t.Fatal("ranks do not make the order")
		}
	})
}

func TestStartWith(t *testing.T) {
	l := newLocation(t, "l", 8, StartWith(3))
	other := newLocation(t, "other", 8)
	var third, first, second Handle
	must(t, Insert(background, third.Writing(l).At(3)))
	must(t, Insert(background, first.Writing(l).At(1), new(Handle).Reading(other)))
	if granted(t, &first) || granted(t, &third) {
		t.Fatal("granted before all have come")
	}
	must(t, Insert(background, second.Writing(l).At(2)))
	for _, h := range []*Handle{&first, &second, &third} {
		must(t, h.Acquire(background))
		if l.queue.Head().Owner != h {
			t.Fatal("ranks do not make the order")
		}
		must(t, h.Release())
	}
}

// A process that is lost before the last request has come is missed, by those
// that wait and by those that come later.
func TestStartWithMissesTheDead(t *testing.T) {
	l := newLocation(t, "l", 8, StartWith(3))
	_, p := served(t, "tcp", l)
	var lost, waits, late Handle
	must(t, waits.WriteRequest(l))
	must(t, lost.WriteRequest(mirror(t, p, "l")))
	waitFor(t, func() bool { return postponed(l) == 2 })
	must(t, p.Close())
	if err := waits.Acquire(background); !errors.Is(err, ErrAbsentTask) {
		t.Fatal(err)
	}
	if err := late.WriteRequest(l); !errors.Is(err, ErrAbsentTask) {
		t.Fatal(err)
	}
}

func postponed(l *Location) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.latch.postponed)
}
