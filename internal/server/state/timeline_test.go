package state

import (
	"math"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/seed"
)

// Whatever comes in whatever order, no second is lost or counted twice, and the bounds hold.
func TestTimelineKeepsAllTime(t *testing.T) {
	random := seed.Source(t)
	for range 20 {
		var line Timeline
		begin := time.Unix(1_800_000_000, 0)
		spread := time.Duration(1 + random.Int64N(int64(time.Hour)<<random.IntN(8)))
		var staging, computing float64
		n := 1 + random.IntN(1500)
		for i := range n {
			at := begin.Add(time.Duration(random.Int64N(int64(spread))))
			u := taskqueue.Usage{StageInStart: at}
			u.Start = at.Add(time.Duration(random.Int64N(int64(time.Second))))
			u.End = u.Start.Add(time.Duration(random.Int64N(int64(spread))))
			u.StageOutEnd = u.End.Add(time.Duration(random.Int64N(int64(time.Second))))
			staging += (u.Start.Sub(at) + u.StageOutEnd.Sub(u.End)).Seconds()
			computing += u.End.Sub(u.Start).Seconds()
			line.add(taskqueue.JobID(i), 1, taskqueue.PilotID(rune('a'+i%5)), i%7 == 0, &u)
		}
		sum := func(bins []float32) (all float64) {
			if len(bins) > TimelineBins {
				t.Errorf("%d bins", len(bins))
			}
			for _, s := range bins {
				all += float64(s)
			}
			return all
		}
		var lanes float64
		for _, l := range line.Lanes {
			lanes += sum(l.Computing)
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-3*(want+1) {
				t.Errorf("%s: %v, not %v", what, got, want)
			}
		}
		near("staging", sum(line.All.Staging), staging)
		near("computing", sum(line.All.Computing), computing)
		near("computing of pilots", lanes, computing)
		near("ended", sum(line.All.Ended), float64(n))
		near("failed", sum(line.All.Failed), float64((n+6)/7))
		if len(line.Spans) != min(n, TimelineSpans) {
			t.Errorf("%d spans of %d", len(line.Spans), n)
		}
	}
}

// Whatever nodes' clocks show, the bins reach from one attempt to the next.
func TestTimelineReachesAsFarAsClocksGo(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, times := range [][]time.Time{
		{now, wire.EarliestClock, wire.LatestClock, now},
		{wire.LatestClock.Add(-time.Hour), wire.EarliestClock, now},
		{now, wire.EarliestClock.Add(-time.Hour), wire.LatestClock.Add(time.Hour), {}, now.AddDate(7000, 0, 0), now},
	} {
		var line Timeline
		known := 0
		for i, at := range times {
			end := at.Add(time.Minute)
			usage := taskqueue.Usage{StageInStart: at, Start: at, End: end, StageOutEnd: end}
			line.add(taskqueue.JobID(i), 1, "p", false, &usage)
			if wire.ClockShows(at) && wire.ClockShows(end) {
				known++
			}
		}
		line.Reach(wire.EarliestClock, wire.LatestClock.AddDate(100, 0, 0))
		running := line.All.Clone()
		line.AddRunning(&running, now, wire.LatestClock.AddDate(100, 0, 0))
		ended := float32(0)
		for _, n := range line.All.Ended {
			ended += n
		}
		if ended != float32(known) || len(line.All.Ended) > TimelineBins || len(running.Computing) > TimelineBins {
			t.Errorf("%v: %v of %d attempts in %d bins of %v", times, ended, known, len(line.All.Ended), line.Width)
		}
	}
}

// A server that starts again takes what an earlier version has recorded of lies.
func TestRecordedLiesAreBorne(t *testing.T) {
	line := newTally("w", nil, new(Nodes))
	now := time.Unix(1_800_000_000, 0)
	for i, years := range []int{0, -250, 250, 7000, -1900} {
		at := now.AddDate(years, 0, 0)
		used := taskqueue.Usage{
			StageInStart: at, Start: at, End: at.Add(time.Minute), StageOutEnd: at.Add(time.Minute),
			CPU: math.MaxInt64, MaxRSS: math.MaxInt64,
		}
		e := taskqueue.Event{Job: taskqueue.NewJobID(1, uint32(i+1)), Result: &taskqueue.Result{Attempt: 1, Usage: used}}
		var told attempts
		if err := line.recall(told.Record(&e)); err != nil {
			t.Fatal(err)
		}
		all, err := line.Attempts.Of(e.Job)
		if err != nil || all[0].GetResult().GetUsage().Impossible() != nil ||
			line.Attempts.Last(e.Job).GetResult().GetUsage().Impossible() != nil {
			t.Error(all, err)
		}
	}
	if n := line.Sums.Attempts(); n != 5 || line.Sums.computing > time.Minute {
		t.Errorf("%d attempts computed for %v", n, line.Sums.computing)
	}
}
