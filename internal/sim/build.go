package sim

import (
	"math/rand/v2"
	"time"

	"fairway/internal/dispatch"
)

// build makes the workflow of one repetition.
func build(exp *Experiment, r *rand.Rand) (*workflow, error) {
	s := exp.Workflow
	w := patterns[s.Pattern](s, r)
	for i := range w.jobs {
		j := &w.jobs[i].job
		j.Needs.MilliCPUs = 1000
		j.Needs.Time = time.Duration(float64(w.jobs[i].run) * s.States)
		j.Retry = dispatch.Retry{Attempts: exp.TaskQueue.Attempts, Backoff: exp.TaskQueue.Backoff}
		j.WaitForData = exp.TaskQueue.WaitForData
	}
	return w, nil
}
