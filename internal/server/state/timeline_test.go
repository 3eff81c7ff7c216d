package state

import (
	"math"
	"testing"
	"time"

	"fairway/internal/dispatch"
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
			u := dispatch.Usage{StageInStart: at}
			u.Start = at.Add(time.Duration(random.Int64N(int64(time.Second))))
			u.End = u.Start.Add(time.Duration(random.Int64N(int64(spread))))
			u.StageOutEnd = u.End.Add(time.Duration(random.Int64N(int64(time.Second))))
			staging += (u.Start.Sub(at) + u.StageOutEnd.Sub(u.End)).Seconds()
			computing += u.End.Sub(u.Start).Seconds()
			line.add(dispatch.JobID(i), 1, dispatch.PilotID(rune('a'+i%5)), i%7 == 0, &u)
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
