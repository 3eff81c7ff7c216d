package pilot

import (
	"os"
	"path/filepath"
	"testing"

	"fairway/internal/wire"
)

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
