package sim

import (
	"math"
	"path/filepath"
	"testing"

	"fairway/test/seed"
	"fairway/test/traces"
)

// With as many pilots as a trace is wide, and storage that costs nothing, a
// run takes as long as the longest chain of its jobs.
func TestTracesReachTheirCriticalPath(t *testing.T) {
	for _, file := range traces.Files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, err := criticalPlan(WorkflowSpec{Trace: file, Scale: 1, SizeScale: 1, Accesses: 1})
			if err != nil {
				t.Fatal(err)
			}
			exp := p.Points[0].Experiment
			exp.Seed = seed.Of(t)
			w, err := workOf(&exp)
			if err != nil {
				t.Fatal(err)
			}
			run, err := Once(exp, 0)
			if err != nil {
				t.Fatal(err)
			}
			took, path := run.Of("turnaround_s"), w.criticalPath().Seconds()
			t.Logf("%d jobs, %d wide: %.1f s, critical path %.1f s", len(w.jobs), w.width(), took, path)
			if math.Abs(took-path) > 0.05*path {
				t.Errorf("took %.1f s, the critical path is %.1f s", took, path)
			}
		})
	}
}
