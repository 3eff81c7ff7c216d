package sim

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
)

// traceWorkflow reads a WfFormat trace. All of its jobs are known at once.
func traceWorkflow(s WorkflowSpec) (*workflow, error) {
	data, err := os.ReadFile(s.Trace)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	parsed, err := flow.ParseTrace(s.Trace, data, flow.TraceOptions{TimeScale: s.Scale, SizeScale: s.SizeScale})
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	f, err := flow.New(parsed, nil)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	w := newWorkflow(parsed.Name)
	var files []flow.InputFile
	for _, file := range f.Inputs()[0].Sizes {
		w.exists(file.LFN, file.Size)
		files = append(files, flow.InputFile{ExistingFile: dispatch.ExistingFile{LFN: file.LFN, PFN: file.LFN, Size: file.Size, Identity: file.LFN}})
	}
	effects, err := f.Step(epoch, flow.Arrived{Input: flow.TraceInput, Files: files})
	if err != nil {
		return nil, fmt.Errorf("begin the trace: %w", err)
	}
	w.replay(effects.Submit)
	if effects, err = f.Step(epoch, flow.Closed{Input: flow.TraceInput}); err != nil {
		return nil, fmt.Errorf("begin the trace: %w", err)
	}
	w.replay(effects.Submit)
	return w, nil
}

// replay adds jobs that compute and write as a trace says.
func (w *workflow) replay(jobs []flow.NewJob) {
	for _, j := range jobs {
		t := task{job: j.Job}
		if r := j.Command.Replay; r != nil {
			t.run = r.Compute
			for _, f := range r.Writes {
				w.sizes[f.LFN] = f.Size
			}
		}
		w.append(t)
	}
}

// criticalPath is the longest chain of run times, with as many pilots as one
// likes and data that moves in no time. It is computed from the reads and
// writes of the jobs alone.
func (w *workflow) criticalPath() time.Duration {
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
func (w *workflow) width() int {
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
