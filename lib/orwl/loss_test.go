package orwl

import (
	"errors"
	"runtime"
	"testing"

	"fairway/lib/orwl/internal/transport"
)

// Poison reaches those, too, who wait behind an insertion that is under way.
func TestPoisonBehindALatch(t *testing.T) {
	l := newLocation(t, "l", 8, Shared(), OnLoss(Poison))
	_, p := served(t, "unix", l)
	var lost, postponed, spanning Handle
	must(t, lost.WriteRequest(mirror(t, p, "l")))
	must(t, lost.Acquire(background))
	other, err := localOwner{}.reserve(background, []Posting{spanning.Writing(l)})
	must(t, err)
	must(t, postponed.ReadRequest(l))
	must(t, p.Close())
	for _, h := range []*Handle{&spanning, &postponed} {
		if err := h.Acquire(background); !errors.Is(err, ErrPoisoned) {
			t.Fatal(err)
		}
	}
	other.settle(true)
	if err := postponed.ReadRequest(l); !errors.Is(err, ErrPoisoned) {
		t.Fatal(err)
	}
}

// What is kept for a lost writer is the version before its grant, also where only
// what changed since the last one is copied. A big location is copied elsewhere.
func TestRollBackAfterSeveralWriters(t *testing.T) {
	for _, size := range []int{8, 4 * transport.InlineLimit} {
		l := newLocation(t, "l", size, Shared())
		s, p := served(t, "unix", l)
		dropped := dialled(t, s, listen(t, "unix"), new(Dialer))
		copies := mirror(t, dialled(t, s, listen(t, "tcp"), new(Dialer)), "l")
		m := mirror(t, p, "l")
		write(t, m, func(b []byte) { b[0] = 1 })
		write(t, copies, func(b []byte) { b[size-1] = 2 })
		write(t, m, func(b []byte) { b[1] = 3 })
		write(t, m, func([]byte) {})
		var lost Handle
		must(t, lost.WriteRequest(mirror(t, dropped, "l")))
		must(t, lost.Acquire(background))
		b, err := lost.WriteMap()
		must(t, err)
		clear(b)
		must(t, dropped.Close())
		if got := read(t, l); got[0] != 1 || got[1] != 3 || got[size-1] != 2 {
			t.Fatalf("%d bytes: went on with %d %d %d", size, got[0], got[1], got[size-1])
		}
	}
}

// A write request that is withdrawn as it is granted is released.
func TestCancelAsAWriterIsGranted(t *testing.T) {
	l := newLocation(t, "l", 8, Shared())
	_, p := served(t, "unix", l)
	m := mirror(t, p, "l")
	for range 20 {
		var h Handle
		must(t, h.WriteRequest(m))
		must(t, h.Cancel())
		write(t, l, func(b []byte) { b[0]++ })
	}
	waitFor(t, func() bool { return l.Waiting() == 0 })
}

// The memory of a location that nobody refers to is given back.
func TestMemoryIsGivenBack(t *testing.T) {
	given := make(chan struct{})
	func() {
		l := newLocation(t, "l", 8, Shared())
		runtime.AddCleanup(l.memory, func(done chan struct{}) { close(done) }, given)
		write(t, l, func(b []byte) { b[0] = 1 })
	}()
	waitFor(t, func() bool {
		runtime.GC()
		select {
		case <-given:
			return true
		default:
			return false
		}
	})
}
