package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// build makes the workflow of one repetition.
func build(exp *experiment.Experiment, r *rand.Rand) (*jobGraph, error) {
	s := exp.Workflow
	w, err := rawWorkflow(s, r)
	if err != nil {
		return nil, err
	}
	w.placeInputs(s.Home)
	for i := range w.jobs {
		w.jobs[i].prepare(exp, r)
	}
	return w, nil
}

// placeInputs shares what exists before the run out among storage elements: the
// first files to the first, and so on.
func (w *jobGraph) placeInputs(elements []string) {
	for i, f := range w.files {
		if len(elements) > 0 {
			w.homes[f.lfn] = elements[i*len(elements)/len(w.files)] + ":" + f.lfn
		}
	}
}

func rawWorkflow(s experiment.WorkflowSpec, r *rand.Rand) (*jobGraph, error) {
	switch {
	case s.Trace != "":
		return traceWorkflow(s)
	case s.File != "":
		return fileWorkflow(s)
	}
	return patterns[s.Pattern](s, r), nil
}

// prepare gives a job what the experiment says of all jobs.
func (t *task) prepare(exp *experiment.Experiment, r *rand.Rand) {
	j, q := &t.job, &exp.TaskQueue
	j.Needs.MilliCPUs = 1000
	override(&j.Needs.Time, roundedUp(time.Duration(float64(t.run)*exp.Workflow.States), exp.Workflow.RoundTo))
	override(&j.Retry.Attempts, q.Attempts)
	override(&j.Retry.Backoff, q.Backoff)
	override(&j.WaitForData, q.WaitForData)
	for k := range j.Writes {
		if r.Float64() < float64(exp.Workflow.Cached) {
			j.Writes[k].Storage = taskqueue.StorageCache
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

// Extent is how large the workflow of an experiment is.
type Extent struct {
	Bytes        int64         // of all files together
	Width        int           // the greatest number of jobs that run at once if every one begins as early as it can
	CriticalPath time.Duration // the longest chain of run times
}

// ExtentOf measures the workflow of the first repetition, without running it:
// as if there were as many pilots as one likes, and data moved in no time. A
// workflow file creates its jobs as it runs, so it has no extent before.
func ExtentOf(exp *experiment.Experiment) (Extent, error) {
	w, err := workOf(exp)
	if err != nil {
		return Extent{}, err
	}
	return Extent{Bytes: w.bytes(), Width: w.width(), CriticalPath: w.criticalPath()}, nil
}

// workOf is the workflow of the first repetition.
func workOf(exp *experiment.Experiment) (*jobGraph, error) {
	return build(exp, Stream(mix(exp.Seed), "workflow"))
}

// bytes is the size of all files of a workflow together.
func (w *jobGraph) bytes() int64 {
	var total int64
	for _, size := range w.sizes {
		total += size
	}
	return total
}

// criticalPath is the longest chain of run times, with as many pilots as one
// likes and data that moves in no time. It is computed from the reads and
// writes of the jobs alone.
func (w *jobGraph) criticalPath() time.Duration {
	ready := map[string]time.Duration{}
	var longest time.Duration
	for _, t := range w.jobs {
		var begin time.Duration
		for _, lfn := range t.job.Reads {
			begin = max(begin, ready[lfn])
		}
		for _, o := range t.job.Writes {
			ready[o.LFN] = begin + t.run
		}
		longest = max(longest, begin+t.run)
	}
	return longest
}

// width is the greatest number of jobs that run at once if every one begins
// as early as it can.
func (w *jobGraph) width() int {
	ready := map[string]time.Duration{}
	change := map[time.Duration]int{}
	for _, t := range w.jobs {
		var begin time.Duration
		for _, lfn := range t.job.Reads {
			begin = max(begin, ready[lfn])
		}
		change[begin]++
		change[begin+max(t.run, 1)]--
		for _, o := range t.job.Writes {
			ready[o.LFN] = begin + t.run
		}
	}
	widest, now := 0, 0
	for _, at := range slices.Sorted(maps.Keys(change)) {
		now += change[at]
		widest = max(widest, now)
	}
	return widest
}
