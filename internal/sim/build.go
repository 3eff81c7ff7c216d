package sim

import (
	"math/rand/v2"
	"time"

	"fairway/internal/dispatch"
)

// build makes the workflow of one repetition.
func build(exp *Experiment, r *rand.Rand) (*workflow, error) {
	s := exp.Workflow
	w, err := rawWorkflow(s, r)
	if err != nil {
		return nil, err
	}
	for i := range w.jobs {
		j := &w.jobs[i].job
		j.Needs.MilliCPUs = 1000
		j.Needs.Time = asked(time.Duration(float64(w.jobs[i].run) * s.States))
		j.Retry = dispatch.Retry{Attempts: exp.TaskQueue.Attempts, Backoff: exp.TaskQueue.Backoff}
		for k := range j.Writes {
			if r.Float64() < float64(s.Cached) {
				j.Writes[k].Storage = dispatch.StorageCache
			}
		}
		j.WaitForData = exp.TaskQueue.WaitForData
	}
	return w, nil
}

func rawWorkflow(s WorkflowSpec, r *rand.Rand) (*workflow, error) {
	if s.Trace != "" {
		return traceWorkflow(s)
	}
	return patterns[s.Pattern](s, r), nil
}

// asked rounds a time up as people do who ask for it.
func asked(d time.Duration) time.Duration {
	const step = 10 * time.Minute
	return (d + step - 1) / step * step
}
