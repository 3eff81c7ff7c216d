package cli

import (
	"testing"

	"fairway/internal/wire"
)

// Jobs wait side by side: the sum of their waits is more than any run takes.
func TestWaitingIsNotSummedOverJobs(t *testing.T) {
	for _, c := range []struct {
		summary *wire.Summary
		want    string
	}{
		{&wire.Summary{WallSeconds: 104, Attempts: 5000, WaitingSeconds: 74 * 3600, StagingSeconds: 50, ComputingSeconds: 200}, "53.3 s queued, 10 ms staging, 40 ms computing per attempt; 3 min 20 s of computing in all"},
		{&wire.Summary{Attempts: 1, WaitingSeconds: 1}, "1.0 s queued, 0 s staging, 0 s computing"},
		{&wire.Summary{}, "0 s queued, 0 s staging, 0 s computing"},
	} {
		if got := timeText(c.summary); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
