package sim

import (
	"fmt"
	"os"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
	"fairway/internal/wfformat"
)

// traceWorkflow reads a WfFormat trace. All of its jobs are known at once.
func traceWorkflow(s experiment.WorkflowSpec) (*jobGraph, error) {
	data, err := os.ReadFile(s.Trace)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	parsed, err := wfformat.Parse(s.Trace, data, workflow.Scales{TimeScale: s.Scale, SizeScale: s.SizeScale})
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	f, err := flow.New(parsed)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	w := newWorkflow()
	var files []flow.InputFile
	for _, file := range f.Inputs()[0].Sizes {
		w.exists(file.LFN, file.Size)
		files = append(files, flow.InputFile{
			ExistingFile: taskqueue.ExistingFile{LFN: file.LFN, PFN: file.LFN, Size: file.Size, Identity: file.LFN},
		})
	}
	effects, err := f.StepToEnd(epoch, flow.Arrived{Input: workflow.RecordedInput, Files: files})
	if err != nil {
		return nil, fmt.Errorf("begin the trace: %w", err)
	}
	w.replay(effects.Submit)
	if effects, err = f.StepToEnd(epoch, flow.Closed{Input: workflow.RecordedInput}); err != nil {
		return nil, fmt.Errorf("begin the trace: %w", err)
	}
	w.replay(effects.Submit)
	return w, nil
}

// replay adds jobs that compute and write as a trace says.
func (w *jobGraph) replay(jobs []workflow.NewJob) {
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
