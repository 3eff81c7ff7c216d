package sched

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// feed gives a the history of events that were waited for as long as wait, one
// every between.
func feed(a *adaptation, n int, wait, between time.Duration) time.Time {
	now := time.Unix(0, 0)
	for range n {
		now = now.Add(between)
		a.ended(&entry{born: now.Add(-wait), ended: now})
	}
	return now
}

func TestSpinsOnlyForEventsThatComeSoon(t *testing.T) {
	for wait, spins := range map[time.Duration]bool{3 * time.Microsecond: true, time.Millisecond: false} {
		var a adaptation
		feed(&a, 100, wait, time.Second)
		if got := a.spin(); got > 0 != spins {
			t.Errorf("waits of %v: spins for %v", wait, got)
		}
	}
	var a adaptation
	feed(&a, learned-1, time.Microsecond, time.Second)
	if got := a.spin(); got != 0 {
		t.Errorf("spins for %v before it has learned", got)
	}
}

// TestSpinCostsAtMostABlockMore holds for any history: by the estimate, polling
// first is never dearer than blocking at once, nor longer than its bound.
func TestSpinCostsAtMostABlockMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a adaptation
		waits := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Second)), learned, 200).Draw(t, "waits")
		var cost, block time.Duration
		for _, w := range waits {
			feed(&a, 1, time.Duration(w), 0)
		}
		limit := a.spin()
		for _, w := range waits {
			block += blockCost
			if d := time.Duration(w); d < limit {
				cost += d
			} else {
				cost += limit + blockCost
			}
		}
		if limit > maxSpin || cost > block {
			t.Fatalf("spins for %v: %v instead of %v", limit, cost, block)
		}
	})
}

func TestPollsWhenEventsAreManyAndPollsAreFree(t *testing.T) {
	h := &hooks{interval: time.Millisecond, reaction: time.Millisecond}
	many := func(free bool) *adaptation {
		a := &adaptation{}
		for range 100 {
			a.polledFor(time.Microsecond, free)
		}
		return a
	}
	a := many(true)
	if now := feed(a, 100, time.Millisecond, 100*time.Microsecond); !a.prefersPolling(h, now) {
		t.Error("blocks for 10,000 events a second")
	}
	a = many(true)
	now := feed(a, 100, time.Millisecond, time.Second)
	if a.prefersPolling(h, now) {
		t.Error("polls for an event a second")
	}
	a = many(false)
	if now := feed(a, 100, time.Millisecond, time.Millisecond); a.prefersPolling(h, now) {
		t.Error("polls on the time of computing tasks")
	}
	a = many(true)
	feed(a, 100, time.Millisecond, 100*time.Microsecond)
	if a.prefersPolling(&hooks{interval: time.Millisecond}, now) {
		t.Error("polls though events should be seen as soon as possible")
	}
}

func TestHistory(t *testing.T) {
	var a adaptation
	feed(&a, 100_000, time.Microsecond, time.Second)
	if a.events > memory {
		t.Errorf("%d events remembered", a.events)
	}
	feed(&a, 2*memory, time.Second, time.Second)
	if a.spin() != 0 {
		t.Error("old history outweighs new")
	}
}

func TestHistogramQuantileIsAnUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
		ds := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Minute)), 1, 100).Draw(t, "durations")
		q := rapid.Float64Range(0, 0.999).Draw(t, "q")
		for _, d := range ds {
			h.observe(time.Duration(d))
		}
		below := 0
		for _, d := range ds {
			if b := h.quantile(q); time.Duration(d) <= b || b == bound(buckets-1) {
				below++
			}
		}
		if float64(below) < q*float64(len(ds)) {
			t.Fatalf("%d of %d within the %v quantile %v", below, len(ds), q, h.quantile(q))
		}
	})
}
