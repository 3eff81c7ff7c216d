package orwl

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// copyOf copies a handle in a way that vet does not see.
func copyOf(h *Handle) *Handle {
	c := new(Handle)
	reflect.ValueOf(c).Elem().Set(reflect.ValueOf(h).Elem())
	return c
}

// copyUnderLock copies a handle whose request others may decide on.
func copyUnderLock(r Resource, h *Handle) *Handle {
	switch r := r.(type) {
	case *Location:
		r.mu.Lock()
		defer r.mu.Unlock()
	case *Mirror:
		r.peer.mu.Lock()
		defer r.peer.mu.Unlock()
	}
	return copyOf(h)
}

// A copy of a handle that holds a lock does not release it a second time.
func TestCopyOfAHandleReleasesNothing(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		_, p := served(t, network, l)
		for name, r := range map[string]Resource{"location": l, "mirror": mirror(t, p, "l")} {
			var first, second, third Handle
			must(t, first.WriteRequest(r))
			must(t, first.Acquire(background))
			copied := copyOf(&first)
			must(t, first.Release())
			must(t, second.WriteRequest(r))
			must(t, second.Acquire(background))
			must(t, third.WriteRequest(r))
			if err := copied.Release(); !errors.Is(err, ErrNotHeld) {
				t.Errorf("%s: the copy released: %v", name, err)
			}
			if granted(t, &third) {
				t.Errorf("%s: two tasks write", name)
			}
			must(t, second.Release())
			must(t, third.Acquire(background))
			must(t, third.Release())
		}
	})
}

// The same while the original still holds it.
func TestCopyOfAHeldHandleReleasesNothing(t *testing.T) {
	for _, waits := range []bool{false, true} {
		l := newLocation(t, "l", 8)
		var first, next Handle
		must(t, first.WriteRequest(l))
		if waits {
			must(t, next.WriteRequest(l))
		}
		copied := copyOf(&first)
		if err := copied.Release(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("the copy released: %v", err)
		}
		if waits && granted(t, &next) {
			t.Error("two tasks write")
		}
		must(t, first.Release())
	}
}

// A copy of a handle whose request waits, or is granted, has no request: it takes neither the
// token of the original nor its place.
func TestCopyOfAWaitingHandleHasNoRequest(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		_, p := served(t, network, l)
		for name, r := range map[string]Resource{"location": l, "mirror": mirror(t, p, "l")} {
			var first, second Handle
			must(t, first.WriteRequest(l))
			must(t, second.WriteRequest(r))
			check := func(when string, c *Handle) {
				if err := c.Acquire(background); !errors.Is(err, ErrNotRequested) {
					t.Errorf("%s, %s: Acquire of the copy: %v", name, when, err)
				}
				if ok, err := c.Test(); ok || !errors.Is(err, ErrNotRequested) {
					t.Errorf("%s, %s: Test of the copy: %v, %v", name, when, ok, err)
				}
				must(t, c.Cancel())
			}
			check("waiting", copyUnderLock(r, &second))
			waiting := copyUnderLock(r, &second)
			must(t, first.Release())
			waitFor(t, func() bool { return l.Waiting() == 1 })
			check("when the original is granted", waiting)
			must(t, second.Acquire(background))
			check("held", copyUnderLock(r, &second))
			must(t, second.Release())
			waitFor(t, func() bool { return l.Waiting() == 0 }) // it has arrived
		}
	})
}

// The same for a copy of a pair.
func TestCopyOfAWaitingPairHasNoRequest(t *testing.T) {
	l := newLocation(t, "l", 8)
	var first Handle
	var second Pair
	must(t, errors.Join(first.WriteRequest(l), second.WriteRequest(l)))
	copied := new(Pair)
	reflect.ValueOf(copied).Elem().Set(reflect.ValueOf(&second).Elem())
	must(t, first.Release())
	if err := copied.Acquire(background); !errors.Is(err, ErrNotRequested) {
		t.Errorf("Acquire of the copy: %v", err)
	}
	must(t, copied.Cancel())
	must(t, second.Acquire(background))
	must(t, second.Finish())
}

// What names no location, or no handle, is refused.
func TestRequestsOfNothingAreRefused(t *testing.T) {
	l := newLocation(t, "l", 8)
	var h Handle
	var p Pair
	for name, r := range map[string]Resource{"nil": nil, "location": (*Location)(nil), "mirror": (*Mirror)(nil)} {
		for what, err := range map[string]error{
			"ReadRequest":  h.ReadRequest(r),
			"WriteRequest": h.WriteRequest(r),
			"Pair":         p.WriteRequest(r),
			"Insert":       Insert(background, new(Handle).Reading(l), h.Writing(r)),
			"Insert first": Insert(background, h.Writing(r), new(Handle).Reading(l)),
			"Gate":         NewGate(1).Insert(background, "task", p.Reading(r)),
		} {
			if !errors.Is(err, ErrNothing) {
				t.Errorf("%s of nothing (%s): %v", what, name, err)
			}
		}
	}
	for _, err := range []error{
		Insert(background, Posting{}), Insert(background, (*Handle)(nil).Reading(l)),
		Insert(background, (*Pair)(nil).Reading(l)),
		NewGate(1).Insert(background, "task", Posting{}),
	} {
		if !errors.Is(err, ErrNothing) {
			t.Errorf("a posting of nothing: %v", err)
		}
	}
	must(t, h.WriteRequest(l))
	must(t, h.Release())
}

// vet tells copies of whatever belongs to one place in memory.
func TestVetTellsCopies(t *testing.T) {
	out, err := exec.Command("go", "vet", "./testdata/copies").CombinedOutput()
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		t.Fatalf("vet finds nothing: %v\n%s", err, out)
	}
	for _, name := range []string{"Handle", "Pair", "Location", "Gate", "Server", "Trace"} {
		if !strings.Contains(string(out), "orwl."+name) {
			t.Errorf("vet does not tell the copy of a %s:\n%s", name, out)
		}
	}
}

// A size that cannot be had is an error, neither a panic nor the end of the process.
func TestSizeBeyondMemory(t *testing.T) {
	kinds := map[string][]Option{"heap": nil, "shared": {Shared()}, "strict": {Strict()}}
	sizes := []int{
		-1, math.MaxInt, math.MaxInt - 7,
		min(1<<62, math.MaxInt), min(1<<48, math.MaxInt), min(1<<46, math.MaxInt),
	}
	if always, err := os.ReadFile("/proc/sys/vm/overcommit_memory"); err == nil && always[0] != '1' {
		sizes = append(sizes, min(1<<40, math.MaxInt))
	}
	for name, options := range kinds {
		for _, size := range sizes {
			if _, err := New("huge", size, options...); err == nil {
				t.Errorf("%s: a location of %d bytes was made", name, size)
			}
			l := newLocation(t, "l", 8, options...)
			write(t, l, func(b []byte) { b[7] = 7 })
			var h Handle
			must(t, h.WriteRequest(l))
			if err := h.Resize(size); err == nil {
				t.Errorf("%s: a location has %d bytes", name, size)
			}
			if b, err := h.ReadMap(); err != nil || len(b) != 8 || b[7] != 7 {
				t.Errorf("%s: after a refused change of its size the data is %v (%v)", name, b, err)
			}
			must(t, h.Release())
		}
	}
}

// A draft of shared memory refuses it, too.
func TestDraftBeyondMemory(t *testing.T) {
	l := newLocation(t, "l", 8, Shared())
	s := &Server{MaxSize: math.MaxInt64}
	s.Add(l)
	m := mirror(t, dialled(t, s, listen(t, "unix"), new(Dialer)), "l")
	var h Handle
	must(t, h.WriteRequest(m))
	must(t, h.Acquire(background))
	for _, size := range []int{math.MaxInt, min(1<<48, math.MaxInt), min(1<<46, math.MaxInt)} {
		if err := h.Resize(size); err == nil {
			t.Errorf("a draft has %d bytes", size)
		}
	}
	if b, err := h.WriteMap(); err != nil || len(b) != 8 {
		t.Errorf("the data is %v (%v)", b, err)
	}
	must(t, h.Release())
}

// Names are bounded the same for every location. The kernel's shorter bound for the
// names of memory is not the user's.
func TestLongNames(t *testing.T) {
	kinds := map[string][]Option{"heap": nil, "shared": {Shared()}, "strict": {Strict()}}
	for kind, options := range kinds {
		for _, name := range []string{"", strings.Repeat("é", MaxName/2), "a\x00b"} {
			if _, err := New(name, 8, options...); err != nil {
				t.Errorf("%s: a name of %d bytes: %v", kind, len(name), err)
			}
		}
		_, err := New(strings.Repeat("x", MaxName+1), 8, options...)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(MaxName)) || len(err.Error()) > 300 {
			t.Errorf("%s: the error of a long name is %v", kind, err)
		}
	}
}

// A Gate names both handles of a pair by its task, so that every iteration is traced
// under it.
func TestGatesNameBothHandlesOfAPair(t *testing.T) {
	gate := NewGate(1)
	var trace Trace
	l := newLocation(t, "l", 8)
	trace.Attach(l)
	var p Pair
	must(t, gate.Insert(background, "task", p.Writing(l)))
	must(t, gate.Wait(background))
	must(t, p.Acquire(background))
	must(t, p.Release())
	must(t, p.Acquire(background))
	must(t, p.Finish())
	if n := trace.Times()["task"].Requests; n != 2 {
		t.Errorf("%d of 2 requests go by the name of the task: %v", n, trace.Times())
	}
}

// Others open a location while its owner changes its size.
func TestOpenBesideResize(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		s, first := served(t, network, l)
		address := listen(t, network)
		var all sync.WaitGroup
		all.Go(func() {
			var h Handle
			for i := range 300 {
				must(t, h.WriteRequest(l))
				must(t, h.Acquire(background))
				must(t, h.Resize(4096*(i%5)+8))
				b, err := h.WriteMap()
				must(t, err)
				b[len(b)-1] = byte(i)
				must(t, h.Release())
			}
		})
		for range 20 {
			p := dialled(t, s, address, new(Dialer))
			read(t, mirror(t, p, "l"))
			must(t, p.Close())
			address = listen(t, network)
		}
		all.Wait()
		if b := read(t, mirror(t, first, "l")); len(b) != 4096*4+8 || b[len(b)-1] != 299%256 {
			t.Fatalf("a mirror sees %d bytes that end with %d", len(b), b[len(b)-1])
		}
	})
}

// What New, Peer.Mirror and Initialize have not made has no data, and says so.
func TestWhatNobodyMadeIsRefused(t *testing.T) {
	var h Handle
	var p Pair
	for name, err := range map[string]error{
		"request":      h.ReadRequest(new(Mirror)),
		"pair":         p.WriteRequest(new(Mirror)),
		"insert":       Insert(background, h.Writing(new(Mirror))),
		"gate":         NewGate(1).Insert(background, "task", h.Writing(new(Mirror))),
		"file":         WriteFile(background, new(Mirror), t.TempDir()+"/f"),
		"location":     Insert(background, h.Writing(new(Location))),
		"location map": mapOf(new(Location)),
	} {
		if !errors.Is(err, ErrNothing) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mapOf returns the error of a mapping.
func mapOf(r Resource) error {
	var h Handle
	if err := h.WriteRequest(r); err != nil {
		return err
	}
	if err := h.Acquire(background); err != nil {
		return err
	}
	_, read := h.ReadMap()
	_, write := h.WriteMap()
	return errors.Join(read, write, h.Resize(8))
}

func TestGateRefusesTwoTasksOfOneName(t *testing.T) {
	g := NewGate(2)
	a, b := newLocation(t, "a", 8), newLocation(t, "b", 8)
	var first, second Handle
	must(t, g.Insert(background, "task", first.Writing(a)))
	if err := g.Insert(background, "task", second.Writing(b)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
	must(t, g.Insert(background, "other", second.Writing(b)))
	must(t, first.Acquire(background))
}

// Files that have no end, or that nobody may write any more, are refused and not read for ever.
func TestLocationFromWhatIsNoFile(t *testing.T) {
	for _, path := range []string{"/dev/zero", "/dev/null", t.TempDir()} {
		if _, err := NewFromFile("l", path); err == nil || !strings.Contains(err.Error(), "regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
