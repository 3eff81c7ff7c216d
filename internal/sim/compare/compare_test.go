package compare

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairway/internal/eviction"
	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
	"fairway/lib/seed"
	"fairway/test/traces"
)

// recorded is the sequence in which a run of a trace uses its files.
func recorded(t *testing.T, trace string) []sim.Access {
	t.Helper()
	p, err := experiment.Parse("test.yaml", fmt.Appendf(nil, `experiment: record
seed: 1
workflow: {trace: %s}
sites: [{name: s, nodes: 1, slots: 4, started: 4}]
storage: [{name: se, bandwidth: 100MB}]
cache: {size: 1TB, share: host, inputs: true}
record_accesses: true
`, trace))
	if err != nil {
		t.Fatal(err)
	}
	run, err := sim.Once(p.Points[0].Experiment, 0)
	if err != nil {
		t.Fatal(err)
	}
	return run.Accesses
}

// On one recorded sequence next use reads hardly anywhere more than LRU, and
// nothing reads less than the bound.
func TestNextUseOnRecordedSequences(t *testing.T) {
	for _, trace := range traces.Files(t) {
		t.Run(filepath.Base(trace), func(t *testing.T) {
			sequence := recorded(t, trace)
			data := dataOf(sequence)
			for _, percent := range []int64{5, 10, 20, 35, 50, 70, 85, 100} {
				limit := data * percent / 100
				lru, err := Replay(eviction.LRU, limit, sequence)
				if err != nil {
					t.Fatal(err)
				}
				next, err := Replay(eviction.NextUse, limit, sequence)
				if err != nil {
					t.Fatal(err)
				}
				bound := lowerBound(limit, sequence)
				t.Logf("%3d %%: LRU %8.2f MB, next use %8.2f MB, %s %8.2f MB", percent,
					float64(lru.Missed)/1e6, float64(next.Missed)/1e6, Bound, float64(bound)/1e6)
				if float64(next.Missed) > 1.01*float64(lru.Missed) {
					t.Errorf("with %d %% next use read %d bytes, LRU %d", percent, next.Missed, lru.Missed)
				}
				if next.Missed < bound || lru.Missed < bound {
					t.Errorf("with %d %% less was read than the bound of %d bytes", percent, bound)
				}
			}
		})
	}
}

// In scheduled runs, where the order of jobs depends on what is cached, next
// use reads less than LRU over all sizes of the cache together. Real traces take
// all sizes with FAIRWAY_SOAK=1, else two; the project's own always takes all.
func TestNextUseInScheduledRuns(t *testing.T) {
	var lru, next float64
	for i, trace := range traces.Files(t) {
		p, err := evictionPlan(experiment.WorkflowSpec{Trace: trace, Scale: 1, SizeScale: 1, Accesses: 1})
		if err != nil {
			t.Fatal(err)
		}
		all := i == 0 || os.Getenv("FAIRWAY_SOAK") != ""
		p.Points = slices.DeleteFunc(p.Points, func(x experiment.Point) bool {
			size, policy := x.Levels[0], eviction.Policy(x.Levels[1])
			return !all && size != "5" && size != "20" || policy != eviction.LRU && policy != eviction.NextUse
		})
		res, err := sim.Sweep(context.Background(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(res.Rows); i += 2 {
			a, b := res.Rows[i].Value("read_gb"), res.Rows[i+1].Value("read_gb")
			t.Logf("%s, %s %%: LRU %.4f GB, next use %.4f GB", filepath.Base(trace), res.Rows[i].Levels[0], a, b)
			lru, next = lru+a, next+b
		}
	}
	t.Logf("in all: LRU %.3f GB, next use %.3f GB", lru, next)
	if next >= lru {
		t.Errorf("next use read %.3f GB, LRU %.3f GB", next, lru)
	}
}

func sequences(t *rapid.T) []sim.Access {
	n := rapid.IntRange(1, 60).Draw(t, "length")
	sizes := rapid.SliceOfN(rapid.Int64Range(1, 20), 8, 8).Draw(t, "sizes")
	var all []sim.Access
	for range n {
		f := rapid.IntRange(0, 7).Draw(t, "file")
		all = append(all, sim.Access{File: taskqueue.FileRef{LFN: fmt.Sprint(f)}, Size: sizes[f]})
	}
	return all
}

func TestNoPolicyReadsLessThanTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sequence := sequences(t)
		limit := rapid.Int64Range(0, 100).Draw(t, "limit")
		bound := lowerBound(limit, sequence)
		for _, policy := range eviction.Policies {
			r, err := Replay(policy, limit, sequence)
			if err != nil {
				t.Fatal(err)
			}
			if r.Missed < bound || r.Missed > r.ReadBytes {
				t.Fatalf("%s read %d bytes of %d, the bound is %d", policy, r.Missed, r.ReadBytes, bound)
			}
		}
	})
}

// With files of equal size, the farthest next use is the best that a cache
// can do that takes in everything (Belady 1966).
func TestNextUseIsBestForEqualSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sequence := sequences(t)
		for i := range sequence {
			sequence[i].Size = 1
		}
		limit := rapid.Int64Range(1, 7).Draw(t, "limit")
		best, err := Replay(eviction.NextUse, limit, sequence)
		if err != nil {
			t.Fatal(err)
		}
		for _, policy := range []eviction.Policy{eviction.FIFO, eviction.LRU, eviction.LFU, eviction.LRUK, eviction.LCBK} {
			if r, _ := Replay(policy, limit, sequence); r.Missed < best.Missed {
				t.Fatalf("%s read %d, next use %d", policy, r.Missed, best.Missed)
			}
		}
	})
}

func TestPolicies(t *testing.T) {
	rows, results, err := Policies(context.Background(), traces.Files(t)[:1], 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 4 {
		t.Errorf("%d results, not one each for eviction, placement, sites and the critical path", len(results))
	}
	for _, r := range rows {
		if r.Policy == LongestChain {
			if r.ReadGB != nil || r.HitRatio != nil || r.Turnaround == nil {
				t.Errorf("a chain of jobs reads: %+v", r)
			}
			continue
		}
		if (r.HitRatio == nil) != (r.Policy == Bound) {
			t.Errorf("hits of files, which the bound does not count: %+v", r)
		}
		if r.OverBound != nil && (*r.OverBound < 0 || r.Kind != KindReplayed || *r.ReadGB == 0) {
			t.Errorf("above a bound: %+v", r)
		}
		if *r.ReadGB < 0 || *r.ByteHitRatio < 0 || *r.ByteHitRatio > 1 {
			t.Errorf("%+v", r)
		}
	}
}

// With as many pilots as a trace is wide, and storage that costs nothing, a
// run takes as long as the longest chain of its jobs.
func TestTracesReachTheirCriticalPath(t *testing.T) {
	for _, file := range traces.Files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, err := criticalPlan(experiment.WorkflowSpec{Trace: file, Scale: 1, SizeScale: 1, Accesses: 1})
			if err != nil {
				t.Fatal(err)
			}
			exp := p.Points[0].Experiment
			exp.Seed = seed.Of(t)
			extent, err := sim.ExtentOf(&exp)
			if err != nil {
				t.Fatal(err)
			}
			run, err := sim.Once(exp, 0)
			if err != nil {
				t.Fatal(err)
			}
			took, path := run.Of("turnaround_s"), extent.CriticalPath.Seconds()
			t.Logf("%d wide: %.1f s, critical path %.1f s", extent.Width, took, path)
			if math.Abs(took-path) > 0.05*path {
				t.Errorf("took %.1f s, the critical path is %.1f s", took, path)
			}
		})
	}
}
