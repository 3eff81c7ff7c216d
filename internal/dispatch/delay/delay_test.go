package delay

import (
	"math/rand/v2"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// Whatever a rule says, a job waits in all no longer than it may, nor than the holder is worth; and it is kept only
// for one that is expected within that time.
func TestPatienceIsBounded(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 0))
	length := func() time.Duration { return time.Duration(rng.IntN(400)) * 10 * time.Millisecond }
	for range 20_000 {
		x := Prospect{Idle: rng.IntN(2) == 0, Free: length(), Saved: length(), Waited: length(), Limit: length()}
		for _, p := range []taskqueue.Placement{taskqueue.ByFiles, taskqueue.ByBytes, taskqueue.ByGain} {
			worth := x.Limit
			if p == taskqueue.ByGain {
				worth = min(x.Saved, x.Limit)
			}
			keeps := x.Waited+x.Free <= worth
			if p == taskqueue.ByGain {
				keeps = keeps && worth >= MinGain
			} else {
				keeps = keeps && x.Idle
			}
			want := time.Duration(0)
			if keeps {
				want = worth - x.Waited
			}
			if d := RuleOf(p).Patience(x); d != want {
				t.Fatalf("FAIRWAY_SEED=%d: rule %v keeps a job for %+v for %v instead of %v", first, p, x, d, want)
			}
			if !x.Idle && want > 0 && !RuleOf(p).WaitsForBusy() {
				t.Fatalf("FAIRWAY_SEED=%d: rule %v waits for a pilot that is busy", first, p)
			}
		}
	}
}

// Files count alike by number, and by their bytes else, none of them nothing.
func TestWeight(t *testing.T) {
	for _, c := range []struct {
		rule         taskqueue.Placement
		empty, large int64
	}{{taskqueue.ByFiles, fileWeight, fileWeight}, {taskqueue.ByBytes, 1, 1 << 40}, {taskqueue.AsConfigured, 1, 1 << 40}} {
		if r := RuleOf(c.rule); r.Weight(0) != c.empty || r.Weight(1<<40) != c.large {
			t.Errorf("rule %v: %d and %d", c.rule, r.Weight(0), r.Weight(1<<40))
		}
	}
}
