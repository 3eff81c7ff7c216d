package dispatch

import (
	"testing"

	"fairway/internal/taskqueue"
)

// Two runs execute the same job before either ends. The result of the one that is retired first is
// kept, and the files of the other one go with it, also if the server crashes in between.
func TestAResultThatTwoRunsMadeIsKeptOnce(t *testing.T) {
	for _, crash := range []bool{false, true} {
		c := newCrashing(t)
		for run := taskqueue.RunID(1); run <= 2; run++ {
			c.step(taskqueue.SetRun{Run: taskqueue.Run{ID: run, Name: "w", KeepGoing: true}})
			c.step(taskqueue.Submit{Run: run, Jobs: []taskqueue.Job{{Name: "a", Step: "s", Digest: "d",
				Writes: []taskqueue.Output{{LFN: "out"}}}}})
		}
		var results []taskqueue.Result
		for _, a := range c.all() {
			pfn := physical("out", a.Outputs[0].Version, a.Attempt)
			results = append(results, taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{
				{LFN: "out", Version: a.Outputs[0].Version, PFN: pfn, Size: 1},
			}})
		}
		if len(results) != 2 {
			t.Fatalf("%d jobs were given out", len(results))
		}
		c.all(results...)
		for run := taskqueue.RunID(1); run <= 2; run++ {
			c.step(taskqueue.CompleteRun{Run: run})
		}
		c.step(taskqueue.RetireRun{Run: 1})
		if crash {
			c.crash()
		}
		c.step(taskqueue.RetireRun{Run: 2})
		c.crash()
		kept := map[string]bool{}
		for _, r := range c.core.Unused() {
			for _, pfn := range r.PFNs {
				kept[pfn] = true
			}
		}
		for _, r := range results {
			if pfn := r.Outputs[0].PFN; kept[pfn] == c.removed[pfn] {
				t.Errorf("crash %v: %s is kept: %v, and removed: %v", crash, pfn, kept[pfn], c.removed[pfn])
			}
		}
	}
}
