package orwl

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/lib/seed"
)

func TestFirstInFirstOut(t *testing.T) {
	l := newLocation(t, "l", 8)
	var w1, r1, r2, w2, r3 Handle
	must(t, w1.WriteRequest(l))
	must(t, r1.ReadRequest(l))
	must(t, r2.ReadRequest(l))
	must(t, w2.WriteRequest(l))
	must(t, r3.ReadRequest(l))
	expect := func(want ...*Handle) {
		t.Helper()
		for i, h := range []*Handle{&w1, &r1, &r2, &w2, &r3} {
			if h.state == idle {
				continue
			}
			is := false
			for _, w := range want {
				is = is || w == h
			}
			if granted(t, h) != is {
				t.Fatalf("request %d: granted is not %v", i, is)
			}
		}
	}
	expect(&w1)
	must(t, w1.Release())
	expect(&r1, &r2)
	must(t, r2.Release())
	expect(&r1)
	must(t, w2.Cancel())
	expect(&r1, &r3)
}

func TestMisuse(t *testing.T) {
	l := newLocation(t, "l", 8, MaxRequests(2))
	var h, read, third Handle
	want := func(err, target error) {
		t.Helper()
		if !errors.Is(err, target) {
			t.Fatalf("got %v, want %v", err, target)
		}
	}
	want(h.Acquire(background), ErrNotRequested)
	want(h.Release(), ErrNotHeld)
	must(t, h.Cancel())
	must(t, read.ReadRequest(l))
	want(read.ReadRequest(l), ErrBusy)
	must(t, h.WriteRequest(l))
	want(third.ReadRequest(l), ErrFull)
	_, err := read.WriteMap()
	want(err, ErrReadOnly)
	want(read.Resize(16), ErrReadOnly)
	_, err = h.ReadMap()
	want(err, ErrNotHeld)
	want(h.Release(), ErrNotHeld)
	must(t, read.Release())
	want(read.Release(), ErrNotHeld)
	want(read.Acquire(background), ErrNotRequested)
	must(t, h.Acquire(background))
	if h.Resize(-1) == nil {
		t.Fatal("a negative size was accepted")
	}
}

func TestEndedContextWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocation(t, "l", 8)
		var holder, w, r Handle
		must(t, holder.ReadRequest(l))
		must(t, w.WriteRequest(l))
		must(t, r.ReadRequest(l))
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		if err := w.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if !granted(t, &r) {
			t.Fatal("the read behind the withdrawn write does not share with the one before")
		}
		must(t, w.WriteRequest(l))
		if granted(t, &w) || l.Waiting() != 3 {
			t.Fatal("the withdrawn handle cannot be used again")
		}
	})
}

func TestDataBelongsToTheLock(t *testing.T) {
	l := newLocation(t, "l", 4)
	var w, r Handle
	must(t, w.WriteRequest(l))
	must(t, r.ReadRequest(l))
	b, err := w.WriteMap()
	must(t, err)
	copy(b, "abcd")
	must(t, w.Resize(6))
	b, err = w.WriteMap()
	must(t, err)
	if !bytes.Equal(b, []byte("abcd\x00\x00")) {
		t.Fatalf("after growing: %q", b)
	}
	must(t, w.Resize(2))
	must(t, w.Resize(4))
	b, _ = w.WriteMap()
	if !bytes.Equal(b, []byte("ab\x00\x00")) {
		t.Fatalf("after shrinking and growing: %q", b)
	}
	must(t, w.Release())
	must(t, r.Acquire(background))
	b, err = r.ReadMap()
	must(t, err)
	if string(b) != "ab\x00\x00" || l.Version() != 1 {
		t.Fatalf("the reader sees %q in version %d", b, l.Version())
	}
	must(t, r.Release())
	if l.Version() != 1 {
		t.Fatal("reading made a version")
	}
}

func TestTypedMapping(t *testing.T) {
	type point struct {
		X, Y float64
		Tag  [2]int32
	}
	l := newLocation(t, "l", 100)
	var p Pair
	must(t, p.WriteRequest(l))
	points, err := WriteAs[point](&p)
	must(t, err)
	if len(points) != 4 {
		t.Fatalf("%d points in 100 bytes", len(points))
	}
	points[3].Y = 2.5
	must(t, p.Release())
	must(t, p.Acquire(background))
	floats, err := ReadAs[float64](&p)
	must(t, err)
	if floats[10] != 2.5 {
		t.Fatalf("got %v", floats)
	}
	if _, err := ReadAs[*int](&p); err == nil {
		t.Fatal("a type with pointers was mapped")
	}
	if _, err := WriteAs[struct{ S string }](&p); err == nil {
		t.Fatal("a type with a string was mapped")
	}
	must(t, p.Finish())
}

func TestUncontendedDoesNotAllocate(t *testing.T) {
	l := newLocation(t, "l", 8)
	var h Handle
	var p Pair
	if n := testing.AllocsPerRun(100, func() {
		h.WriteRequest(l)
		h.Acquire(background)
		h.Release()
	}); n != 0 {
		t.Errorf("%v allocations a lock cycle", n)
	}
	must(t, p.WriteRequest(l))
	if n := testing.AllocsPerRun(100, func() {
		p.Acquire(background)
		WriteAs[float64](&p)
		p.Release()
	}); n != 0 {
		t.Errorf("%v allocations a pair cycle", n)
	}
}

// Cancelling races with granting: whoever comes second must cope, and no
// request is lost.
func TestCancelRacesWithGrant(t *testing.T) {
	rng := seed.Source(t)
	l := newLocation(t, "l", 8)
	for range rounds(300) {
		var holder Handle
		must(t, holder.WriteRequest(l))
		var all sync.WaitGroup
		for range 6 {
			h, mode := new(Handle), Mode(rng.IntN(2))
			must(t, h.request(l, mode))
			ctx, cancel := context.WithCancel(background)
			all.Go(func() {
				if h.Acquire(ctx) == nil {
					must(t, h.Release())
				}
			})
			switch rng.IntN(3) {
			case 0:
				all.Go(cancel)
			case 1:
				cancel()
			default:
				defer cancel()
			}
		}
		must(t, holder.Release())
		all.Wait()
		if n := l.Waiting(); n != 0 {
			t.Fatalf("%d requests are left", n)
		}
	}
}

// Requests that wait for a start stand at the location.
func TestWaitingCountsRequestsBeforeTheStart(t *testing.T) {
	l := newLocation(t, "l", 8, StartWith(3))
	var a, b, c Handle
	must(t, a.WriteRequest(l))
	must(t, Insert(background, b.Reading(l)))
	if n := l.Waiting(); n != 2 {
		t.Errorf("%d requests wait for the start", n)
	}
	must(t, c.WriteRequest(l))
	if n := l.Waiting(); n != 3 {
		t.Errorf("%d requests after the start", n)
	}
	for _, h := range []*Handle{&a, &b, &c} {
		must(t, h.Acquire(background))
		must(t, h.Release())
	}
}
