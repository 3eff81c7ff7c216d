package orwl

import (
	"context"
	"errors"
	"testing"
)

// A gate for nobody is open.
func TestGateOfNoTasks(t *testing.T) {
	g := NewGate(0)
	must(t, g.Wait(background))
	wantError(t, g.Insert(background, "a"), "task a comes to a gate that is open")
}

// Of several postings it is told which one is of nothing.
func TestPostingsOfNothingAreCounted(t *testing.T) {
	l := newLocation(t, "l", 1)
	wantError(t, Insert(background, new(Handle).Writing(l), Posting{}), "posting 2 of 2")
}

// What is cancelled together stands in nobody's way.
func TestCancelledHandlesGiveWay(t *testing.T) {
	a, b := newLocation(t, "a", 1), newLocation(t, "b", 1)
	held, waiting := Handles{new(Handle), new(Handle)}, Handles{new(Handle), new(Handle)}
	for _, hs := range []Handles{held, waiting} {
		must(t, hs[0].WriteRequest(a))
		must(t, hs[1].WriteRequest(b))
	}
	must(t, held.Acquire(background))
	if ok, err := waiting.Test(); ok || err != nil {
		t.Fatal(ok, err)
	}
	must(t, held.Cancel())
	must(t, waiting.Acquire(background))
	must(t, waiting.Release())
}

// Pairs that are not held release nothing, and say so.
func TestPairsThatAreNotHeld(t *testing.T) {
	l := newLocation(t, "l", 1)
	first, second := new(Handle), new(Pair)
	must(t, Insert(background, first.Writing(l).At(0)))
	must(t, Insert(background, second.Writing(l).At(1)))
	if err := (Pairs{second}).Release(); !errors.Is(err, ErrNotHeld) {
		t.Error(err)
	}
	must(t, first.Acquire(background))
	must(t, first.Release())
}

// Without checkpoints a task releases all the same.
func TestNoCheckpointsRelease(t *testing.T) {
	l := newLocation(t, "l", 1)
	ps := []*Pair{new(Pair), new(Pair)}
	for rank, p := range ps {
		must(t, Insert(background, p.Writing(l).At(rank)))
	}
	var none *Checkpoints
	for n := range 4 {
		p := ps[n%2]
		must(t, p.Acquire(background))
		must(t, none.Release(background, n/2+1, Pairs{p}))
	}
	must(t, errors.Join(ps[0].Cancel(), ps[1].Cancel()))
}

// A process knows which of its parts were stored last, how many, and why a later one was not.
func TestPartsThatWereStored(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	x, _, _ := asked(t, ctx)
	c := &Checkpoints{exch: x, ctx: ctx, covered: []*covered{{newLocation(t, "l", 4), []byte("data")}}}
	for k, iteration := range []int{3, 8} {
		c.busy = true
		c.store(&shot{iteration: iteration})
		if last, count, err := c.Saved(); last != iteration || count != k+1 || err != nil || c.busy {
			t.Errorf("the last of %d is of iteration %d, %v", count, last, err)
		}
	}
	must(t, x.pair.Cancel())
	c.store(&shot{iteration: 9})
	last, count, err := c.Saved()
	if last != 8 || count != 2 {
		t.Errorf("the last of %d is of iteration %d", count, last)
	}
	wantError(t, err, "checkpoint after iteration 9: ")
}

// A process that is gone is not one that serves something else.
func TestResourcesOfLostProcesses(t *testing.T) {
	s := new(Server)
	s.Add(newLocation(t, "there", 1))
	p := dialled(t, s, listen(t, "unix"), &Dialer{Once: true})
	m := &Member{own: map[string]*Location{"own": newLocation(t, "own", 1)}, peers: []*Peer{nil, p}}
	for _, name := range []string{"own", "there"} {
		if r, err := m.Resource(background, name); err != nil || r.Name() != name {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if _, err := m.Resource(background, "nowhere"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	must(t, p.Close())
	if r, err := m.Resource(background, "nowhere"); r != nil || err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("%v, %v", r, err)
	}
}
