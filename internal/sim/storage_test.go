package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairway/internal/sim/experiment"
)

func TestLinkIsSharedFairly(t *testing.T) {
	var e engine
	l := newLink(&e, 100, 0)
	var ends []time.Duration
	note := func() { ends = append(ends, e.now) }
	l.send(100, note)                                    // alone for 1 s would do
	l.send(200, note)                                    // shares until 2 s, then alone
	e.after(4*time.Second, func() { l.send(100, note) }) // after both
	for e.step() {
	}
	want := []time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second}
	for i := range want {
		if d := ends[i] - want[i]; d < 0 || d > time.Microsecond {
			t.Errorf("transfer %d ended at %v, not %v", i, ends[i], want[i])
		}
	}
}

func TestConnectionLimitsOneTransfer(t *testing.T) {
	var e engine
	l := newLink(&e, 100, 10)
	var end time.Duration
	l.send(100, func() { end = e.now })
	for e.step() {
	}
	if end != 10*time.Second {
		t.Errorf("ended at %v, not 10s", end)
	}
}

// No link carries more than its bandwidth, and none idles while something
// waits: so work that comes all at once ends exactly when it must.
func TestLinkConservesWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e engine
		l := newLink(&e, 1000, 0)
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 100_000), 1, 30).Draw(t, "sizes")
		var total int64
		left := len(sizes)
		for _, size := range sizes {
			total += size
			l.send(size, func() { left-- })
		}
		for e.step() {
		}
		want := seconds(float64(total) / 1000)
		if d := e.now - want; left != 0 || d < -50*time.Millisecond || d > 50*time.Millisecond {
			t.Fatalf("ended at %v with %d left, not at %v", e.now, left, want)
		}
	})
}

func TestElementNeverOverwrites(t *testing.T) {
	var e engine
	s := newElement(&e, experiment.StorageSpec{Name: "se", Capacity: 10})
	if !s.put("se:a", 6) || s.put("se:a", 1) || s.put("se:b", 5) || !s.put("se:c", 4) {
		t.Error("a name was used twice, or more stored than fits")
	}
	s.remove("se:a")
	if !s.put("se:b", 5) {
		t.Error("no room after a removal")
	}
}
