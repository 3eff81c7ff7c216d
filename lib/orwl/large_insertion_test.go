package orwl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// manyPostings is more than fits into one frame.
const manyPostings = 40_000

// postMany prepares reads of m, with names of some length.
func postMany(m Resource, prefix string) (Handles, []Posting) {
	hs, postings := make(Handles, manyPostings), make([]Posting, manyPostings)
	for i := range hs {
		hs[i] = &Handle{Name: fmt.Sprint(prefix, i)}
		postings[i] = hs[i].Reading(m)
	}
	return hs, postings
}

// A task inserts many thousand requests by a connection, and another task's lock there
// stays its own.
func TestLargeInsertion(t *testing.T) {
	l, other := newLocation(t, "l", 8), newLocation(t, "other", 8)
	_, p := served(t, "tcp", l, other)
	var held Handle
	must(t, errors.Join(held.WriteRequest(mirror(t, p, "other")), held.Acquire(background)))
	hs, postings := postMany(mirror(t, p, "l"), strings.Repeat("a long name ", 8))
	must(t, Insert(background, postings...))
	must(t, hs.Acquire(background))
	must(t, hs.Release())
	must(t, held.Release())
	write(t, l, func([]byte) {})
}

// An insertion of many requests that waits ends with its context, and nothing of it is
// left.
func TestLargeInsertionEndsWithItsContext(t *testing.T) {
	l, other := newLocation(t, "l", 8), newLocation(t, "other", 8)
	_, p := served(t, "tcp", l, other)
	var held, spanning Handle
	must(t, errors.Join(held.WriteRequest(mirror(t, p, "other")), held.Acquire(background)))
	latched, err := localOwner{}.reserve(background, []Posting{spanning.Writing(l)})
	must(t, err)
	hs, postings := postMany(mirror(t, p, "l"), "h")
	ctx, cancel := context.WithCancel(background)
	cancel()
	if err := Insert(ctx, postings...); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	latched.settle(true)
	must(t, held.Release())
	must(t, errors.Join(spanning.Acquire(background), spanning.Release()))
	must(t, Insert(background, postings...)) // the handles can be used again
	must(t, hs.Acquire(background))
	must(t, hs.Release())
	waitFor(t, func() bool { return l.Waiting() == 0 })
}

// More requests than a connection may have are refused as a whole, and those that a task
// has there stay.
func TestInsertionBeyondTheLimitOfAConnection(t *testing.T) {
	l, other := newLocation(t, "l", 8), newLocation(t, "other", 8)
	s := &Server{MaxRequests: 2 * requestsPerFrame}
	s.Add(l, other)
	p := dialled(t, s, listen(t, "tcp"), new(Dialer))
	var held Handle
	must(t, errors.Join(held.WriteRequest(mirror(t, p, "other")), held.Acquire(background)))
	hs, postings := postMany(mirror(t, p, "l"), "h")
	if err := Insert(background, postings...); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if n := l.Waiting(); n != 0 {
		t.Fatalf("%d requests are left", n)
	}
	must(t, Insert(background, postings[:2*requestsPerFrame-1]...))
	hs = hs[:2*requestsPerFrame-1]
	must(t, hs.Acquire(background))
	must(t, hs.Release())
	must(t, held.Release())
}
