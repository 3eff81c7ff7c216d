package state

import (
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// A guess from one job, or for steps of which nothing is known, misleads.
func TestTimeLeftIsSaidOnlyWhereItIsKnown(t *testing.T) {
	p := newPace()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := start
	ends := func(step string, after, took time.Duration) {
		at = start.Add(after)
		p.add(&taskqueue.Event{Step: step, At: at, Result: &taskqueue.Result{Usage: taskqueue.Usage{
			StageInStart: at.Add(-took), Start: at.Add(-took), End: at, StageOutEnd: at,
		}}})
	}
	want := func(rest map[string]int, left time.Duration) {
		t.Helper()
		if got := p.estimate(at, rest); got.Round(time.Second) != left {
			t.Errorf("%v left for %v, want %v", got, rest, left)
		}
	}
	want(map[string]int{"align": 5}, 0)
	ends("align", 10*time.Second, 10*time.Second)
	ends("align", 10*time.Second, 10*time.Second)
	want(map[string]int{"align": 5}, 0)
	ends("align", 20*time.Second, 10*time.Second)
	ends("align", 20*time.Second, 10*time.Second)
	want(map[string]int{"align": 6}, 30*time.Second) // two side by side
	want(map[string]int{"align": 6, "merge": 1}, 0)
	ends("merge", 30*time.Second, 20*time.Second) // 60 s of work in 30 s
	want(map[string]int{"align": 6, "merge": 1}, 40*time.Second)
	p.add(&taskqueue.Event{Step: "align", At: at, Result: &taskqueue.Result{Outcome: taskqueue.Exited}})
	want(map[string]int{"align": 6, "merge": 1}, 40*time.Second)
}
