package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEventsHappenInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e engine
		type did struct {
			at    time.Duration
			asked int
		}
		var order []did
		delays := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 50).Draw(t, "delays")
		for i, d := range delays {
			e.after(time.Duration(d), func() { order = append(order, did{e.now, i}) })
		}
		for e.step() {
		}
		if len(order) != len(delays) {
			t.Fatalf("%d of %d events happened", len(order), len(delays))
		}
		if !slices.IsSortedFunc(order, func(a, b did) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.asked - b.asked
		}) {
			t.Fatalf("out of order: %v", order)
		}
	})
}

func TestStreamsAreTheirOwn(t *testing.T) {
	a, again, b := Stream(1, "pilot", 7), Stream(1, "pilot", 7), Stream(1, "pilot", 8)
	if x, y := a.Uint64(), again.Uint64(); x != y {
		t.Errorf("the same stream gave %d and %d", x, y)
	}
	if x, y := a.Uint64(), b.Uint64(); x == y {
		t.Error("two streams gave the same number")
	}
	if Stream(1, "pilot", 7).Uint64() == Stream(2, "pilot", 7).Uint64() {
		t.Error("two seeds gave the same number")
	}
}
