package screen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/internal/wire"
)

// A file may be called as it likes; it does not colour what a person reads.
func TestNamesBringNoColours(t *testing.T) {
	const name = "\x1b[32mfine\x1b[0m"
	var out strings.Builder
	fmt.Fprintln(&out, resultsText(&wire.Summary{Results: "results", Published: []string{name, name}, PublishedCount: 2}))
	(&lines{out: &out, now: time.Now}).Show(&wire.ProgressReport{Notes: []string{name}, Summary: &wire.Summary{}})
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), `\x1b[32mfine`) != 3 {
		t.Errorf("it says %q", out.String())
	}
}

// Jobs wait side by side: the sum of their waits is more than any run takes.
func TestWaitingIsNotSummedOverJobs(t *testing.T) {
	for _, c := range []struct {
		summary *wire.Summary
		want    string
	}{
		{&wire.Summary{WallSeconds: 104, Attempts: 5000, WaitingSeconds: 74 * 3600, StagingSeconds: 50,
			ComputingSeconds: 200}, "53.3 s queued, 10 ms staging, 40 ms computing per attempt; 3 min 20 s of computing in all"},
		{&wire.Summary{Attempts: 1, WaitingSeconds: 1}, "1.0 s queued, 0 s staging, 0 s computing"},
		{&wire.Summary{}, "0 s queued, 0 s staging, 0 s computing"},
	} {
		if got := timeText(c.summary); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Hits whose bytes were moved for the run are told apart from those that were there.
func TestHitsAreToldApart(t *testing.T) {
	for want, summary := range map[string]*wire.Summary{
		"no inputs staged in":      {},
		"1 hit of 2 inputs (50 %)": {CacheHits: 1, CacheMisses: 1},
		"9 hits of 10 inputs (90 %), 3 from other hosts, 2 prefetched": {CacheHits: 9, CacheMisses: 1, RemoteHits: 3,
			PrefetchHits: 2},
	} {
		if got := cacheText(summary); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
