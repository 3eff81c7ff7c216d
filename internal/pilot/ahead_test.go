package pilot

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

// What is fetched ahead is told of the first attempt that needs it, up to its turn.
func TestFilesFetchedAheadAreToldOfTheFirstReader(t *testing.T) {
	f := &wire.InputFile{File: &wire.FileRef{Lfn: "f", Version: 1}}
	for name, test := range map[string]struct {
		turn time.Duration // of the first reader after the fetch began; 0: it still waits
		want [2]time.Duration
	}{
		"both wait":                 {0, [2]time.Duration{3 * time.Second, 0}},
		"its turn came meanwhile":   {time.Second, [2]time.Duration{time.Second, 0}},
		"its turn had come already": {-time.Second, [2]time.Duration{0, 3 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pilot{known: map[uint64]*attempt{}}
				var readers []*attempt
				for id := range uint64(2) {
					a := &attempt{Execution: stage.Execution{Assignment: &wire.Assignment{Attempt: id, Inputs: []*wire.InputFile{f}}}, queued: true}
					p.known[id] = a
					readers = append(readers, a)
				}
				began := time.Now()
				p.queue = readers
				if test.turn != 0 {
					p.queue = readers[1:]
					readers[0].queued, readers[0].turn = false, began.Add(test.turn)
				}
				<-time.After(3 * time.Second)
				p.wasPrefetched(f, began)
				for i, a := range readers {
					if a.stagedAhead != test.want[i] {
						t.Errorf("reader %d: %v ahead, want %v", i+1, a.stagedAhead, test.want[i])
					}
				}
			})
		})
	}
}

// An attempt whose sandbox was made ready while another one computed says so; one that
// started at once has nothing to say.
func TestStageInBeforeTheTurnIsReported(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.MilliCPUs = 1000
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: t.TempDir(), MaxSpace: 1000}
	q.start(cfg)
	file, input := filepath.Join(t.TempDir(), "go"), writeFile(t, "input")
	first := shell("while ! [ -e "+file+" ]; do sleep 0.01; done", reads("a", 1, 5, input))
	second := shell("cat b", reads("b", 1, 5, input))
	q.assign("p1", first, second)
	q.started("p1", first.GetAttempt())
	q.change(func() { q.pilot("p1").pre, q.pilot("p1").news = second.GetInputs(), true })
	q.until("prefetch", func() bool { return q.pilot("p1").cached["b@1"] })
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if ahead := q.result(first.GetAttempt()).GetUsage().GetStagedAhead().AsDuration(); ahead != 0 {
		t.Errorf("the first attempt says that it was staged in ahead for %v", ahead)
	}
	r := q.result(second.GetAttempt())
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if r.GetUsage().GetStagedAhead().AsDuration() <= 0 || r.GetUsage().GetCacheHits() != 1 {
		t.Errorf("the second attempt says %v", r.GetUsage())
	}
	// The file was brought in for it: whoever reads it later finds it in the cache.
	third := shell("cat b", reads("b", 1, 5, input))
	for n, u := range []*wire.Usage{r.GetUsage(), q.run("p1", third).GetUsage()} {
		if hits := u.GetPrefetchHits(); int(hits) != 1-n || u.GetBytesPrefetched() != int64(5*hits) {
			t.Errorf("reader %d says %v", n+1, u)
		}
	}
	q.until("counts", func() bool {
		counts := q.pilot("p1").counts
		return counts.GetPrefetchedFiles() == 1 && counts.GetPrefetchedBytes() == 5 && counts.GetEvictedFiles() == 0
	})
}
