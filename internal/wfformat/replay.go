package wfformat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// controlFolder has the empty files by which a task waits for a parent that
// it shares no file with.
const controlFolder = "_after/"

// Parse reads a recorded run in WfFormat 1.5 or 1.6 as a workflow that
// replays it: a job for each task, in topological order, that computes as
// long and writes as much as the trace says, scaled. Each job needs one
// processor, whatever machine the trace is from. The trace has no parameters.
func Parse(file string, data []byte, scales workflow.Scales) (*workflow.Workflow, error) {
	if bad := func(x float64) bool { return !(x >= 0 && x <= 1e6) }; bad(scales.TimeScale) || bad(scales.SizeScale) {
		return nil, errors.New("a scale is a number from 0 to 1000000")
	}
	record, err := decodeTrace(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	t := &trace{record: record, scales: scales}
	if err := t.link(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t.workflow(file, data), nil
}

// Is reports whether a file is a recorded run: a JSON object, of which a workflow in JSON differs in
// having its steps at the top.
func Is(data []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return false
	}
	var top struct{ Steps json.RawMessage }
	return json.Unmarshal(data, &top) != nil || top.Steps == nil
}

// ParseEither reads a workflow file as [flow.Parse] does, or a recorded run as [Parse] does.
func ParseEither(file string, data []byte, scales workflow.Scales) (*workflow.Workflow, error) {
	if Is(data) {
		return Parse(file, data, scales)
	}
	return workflow.Parse(file, data)
}

type trace struct {
	record  *traceRecord
	scales  workflow.Scales
	tasks   []*traceTask // in topological order, from link on
	names   *lfns
	sizes   map[string]int64
	outside []workflow.SizedFile // files that no task makes
}

type traceTask struct {
	specification *taskRecord
	execution     *executionRecord
	rank          int // in the file
	parents       []*traceTask
	reads         []string
	writes        []workflow.SizedFile
	control       string // the file by which children wait, if any need it
}

func (t *trace) workflow(file string, data []byte) *workflow.Workflow {
	r := workflow.Recorded{
		File: file, Name: traceName(t.record.Name), About: t.record.Description, Text: data,
		Scales: t.scales, Outside: t.outside, Jobs: make([]workflow.NewJob, len(t.tasks)),
	}
	for i, task := range t.tasks {
		r.Jobs[i] = t.job(task)
	}
	return workflow.NewRecorded(r)
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

func traceName(name string) string {
	if name = notInName.ReplaceAllString(name, "-"); name == "" {
		return "trace"
	}
	return name
}

// categorySuffix is what follows the kind of a task in its name.
var categorySuffix = regexp.MustCompile(`_?(ID)?[0-9]*$`)

func category(task *taskRecord) string {
	name := task.Name
	if name == "" {
		name = task.ID
	}
	if kind := categorySuffix.ReplaceAllString(name, ""); kind != "" {
		name = kind
	}
	return traceName(name)
}

func (t *trace) job(task *traceTask) workflow.NewJob {
	j := workflow.NewJob{
		Job: taskqueue.Job{
			Name: task.specification.ID, Step: category(task.specification),
			Reads: task.reads, Needs: taskqueue.Resources{MilliCPUs: 1000},
		},
		Command: workflow.Command{Replay: &workflow.Replay{
			Compute: time.Duration(math.Round(min(task.execution.Runtime*t.scales.TimeScale*1e9, float64(workflow.MaxReplay)))),
			Writes:  task.writes,
			Program: task.execution.Command.Program,
		}},
	}
	for _, w := range task.writes {
		j.Job.Writes = append(j.Job.Writes, taskqueue.Output{LFN: w.LFN})
	}
	return j
}
