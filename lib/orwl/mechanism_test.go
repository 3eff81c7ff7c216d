package orwl

import (
	"errors"
	"slices"
	"testing"
)

// logged is a location that notes what the pairs on it do.
type logged struct {
	*Location
	log *[]string
}

func (l logged) insert(h *Handle, m Mode) error {
	*l.log = append(*l.log, "post "+l.name)
	err := l.Location.insert(h, m)
	h.res = l
	return err
}

func (l logged) cycle(cur, next *Handle) error {
	*l.log = append(*l.log, "post and release "+l.name)
	return l.Location.cycle(cur, next)
}

func (l logged) release(h *Handle) error {
	*l.log = append(*l.log, "release "+l.name)
	return l.Location.release(h)
}

// A task with several locations posts all its next requests before it releases the first.
func TestPairsPostAllBeforeAnyRelease(t *testing.T) {
	var log []string
	a, b := logged{newLocation(t, "a", 8), &log}, logged{newLocation(t, "b", 8), &log}
	var first, second Pair
	for p, l := range map[*Pair]logged{&first: a, &second: b} {
		must(t, p.now().WriteRequest(l.Location))
		p.now().res = l
	}
	pairs := Pairs{&first, &second}
	must(t, pairs.Acquire(background))
	must(t, pairs.Release())
	if want := []string{"post a", "post b", "release a", "release b"}; !slices.Equal(log, want) {
		t.Errorf("%q, not %q", log, want)
	}
	must(t, pairs.Acquire(background))
	must(t, pairs.Finish())
}

// The data of a request that was announced arrives before its task asks for it.
func TestDataTravelsAheadOfAcquire(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		_, p := served(t, network, l)
		m := mirror(t, p, "l")
		for n := range byte(3) {
			var owner, far Handle
			must(t, owner.WriteRequest(l))
			must(t, owner.Acquire(background))
			must(t, far.ReadRequest(m))
			data, err := owner.WriteMap()
			must(t, err)
			data[0] = n + 1
			must(t, owner.Release())
			waitFor(t, func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return far.state == held && m.replica.Version == l.Version() && m.replica.Memory.Bytes[0] == n+1
			})
			must(t, far.Acquire(background))
			must(t, far.Release())
		}
	})
}

// After the last iteration of a pair nobody stands at the location for it.
func TestFinishPostsNoFurtherRequest(t *testing.T) {
	l := newLocation(t, "l", 8)
	var p Pair
	must(t, p.WriteRequest(l))
	must(t, p.Acquire(background))
	must(t, p.Finish())
	if n := l.Waiting(); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// Who waits, or has released, is not given the data.
func TestOnlyWhoHoldsTheLockGetsTheData(t *testing.T) {
	l := newLocation(t, "l", 8)
	var first, second Handle
	must(t, first.WriteRequest(l))
	must(t, second.ReadRequest(l))
	must(t, first.Acquire(background))
	if b, err := second.ReadMap(); !errors.Is(err, ErrNotHeld) || b != nil {
		t.Errorf("who waits: %v, %v", b, err)
	}
	must(t, first.Release())
	if b, err := first.WriteMap(); !errors.Is(err, ErrNotHeld) || b != nil {
		t.Errorf("who has released: %v, %v", b, err)
	}
	must(t, second.Acquire(background))
	must(t, second.Release())
}

// A pair posts its next request and releases the current one as one step.
func TestPairPostsBeforeItReleases(t *testing.T) {
	var log []string
	l := logged{newLocation(t, "l", 8), &log}
	var p Pair
	must(t, p.now().WriteRequest(l.Location))
	p.now().res = l
	must(t, p.Acquire(background))
	must(t, p.Release())
	if want := []string{"post and release l"}; !slices.Equal(log, want) {
		t.Errorf("%q, not %q", log, want)
	}
	must(t, p.Acquire(background))
	must(t, p.Finish())
}
