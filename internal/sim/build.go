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
	w.settleIn(s.Home)
	for i := range w.jobs {
		w.jobs[i].prepare(exp, r)
	}
	return w, nil
}

// settleIn shares what exists before the run out among storage elements: the
// first files to the first, and so on.
func (w *workflow) settleIn(elements []string) {
	for i, f := range w.files {
		if len(elements) > 0 {
			w.homes[f.lfn] = elements[i*len(elements)/len(w.files)] + ":" + f.lfn
		}
	}
}

func rawWorkflow(s WorkflowSpec, r *rand.Rand) (*workflow, error) {
	switch {
	case s.Trace != "":
		return traceWorkflow(s)
	case s.File != "":
		return fileWorkflow(s)
	}
	return patterns[s.Pattern](s, r), nil
}

// prepare gives a job what the experiment says of all jobs.
func (t *task) prepare(exp *Experiment, r *rand.Rand) {
	j, q := &t.job, &exp.TaskQueue
	j.Needs.MilliCPUs = 1000
	override(&j.Needs.Time, roundedUp(time.Duration(float64(t.run)*exp.Workflow.States), exp.Workflow.RoundTo))
	override(&j.Retry.Attempts, q.Attempts)
	override(&j.Retry.Backoff, q.Backoff)
	override(&j.WaitForData, q.WaitForData)
	for k := range j.Writes {
		if r.Float64() < float64(exp.Workflow.Cached) {
			j.Writes[k].Storage = dispatch.StorageCache
		}
	}
}

func override[T comparable](p *T, value T) {
	var zero T
	if value != zero {
		*p = value
	}
}

// roundedUp rounds a time up as people do who ask for it.
func roundedUp(d, step time.Duration) time.Duration { return (d + step - 1) / step * step }
