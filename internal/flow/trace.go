package flow

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/zeebo/blake3"

	"fairway/internal/dispatch"
)

// TraceOptions scale a trace. Zero is legal: jobs that take no time, empty
// files.
type TraceOptions struct {
	TimeScale float64
	SizeScale float64
}

// TraceInput is the name of the one input of a trace: the files that no task
// of it makes. See [DeclaredInput.Sizes].
const TraceInput = "trace"

// controlFolder has the empty files by which a task waits for a parent that
// it shares no file with.
const controlFolder = "_after/"

// ParseTrace reads a recorded run in WfFormat 1.5 or 1.6 as a workflow that
// replays it: a job for each task, in topological order, that computes as
// long and writes as much as the trace says, scaled. Each job needs one
// processor, whatever machine the trace is from. The trace has no parameters.
func ParseTrace(file string, data []byte, o TraceOptions) (*Workflow, error) {
	if bad := func(x float64) bool { return !(x >= 0 && x <= 1e6) }; bad(o.TimeScale) || bad(o.SizeScale) {
		return nil, errors.New("a scale is a number from 0 to 1000000")
	}
	record, err := decodeTrace(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	t := &trace{record: record, options: o}
	if err := t.link(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t.workflow(file, data), nil
}

// trace is a recorded run on its way to a workflow.
type trace struct {
	record  *traceRecord
	options TraceOptions
	tasks   []*traceTask // in topological order, from link on
	names   *lfns
	sizes   map[string]int64
	outside []SizedFile // files that no task makes
}

type traceTask struct {
	specification *taskRecord
	execution     *executionRecord
	rank          int // in the file
	parents       []*traceTask
	reads         []string
	writes        []SizedFile
	control       string // the file by which children wait, if any need it
}

func (t *trace) workflow(file string, data []byte) *Workflow {
	in := &DeclaredInput{Name: TraceInput, Line: 1, Sizes: t.outside, MayBeEmpty: true}
	made := &maker{input: in, pattern: &pattern{}}
	w := &Workflow{
		File: file, Name: traceName(t.record.Name), About: t.record.Description, data: data, scales: &t.options,
		Inputs: []*DeclaredInput{in}, values: map[string]string{}, fixed: []NewJob{},
	}
	steps := map[string]*step{}
	for _, task := range t.tasks {
		job := t.job(task)
		if steps[job.Job.Step] == nil {
			s := &step{name: job.Job.Step, listed: len(w.steps), order: len(w.steps) + 1, replayed: true, feeds: [][]*maker{{made}}}
			steps[s.name] = s
			w.steps = append(w.steps, s)
		}
		w.fixed = append(w.fixed, job)
	}
	h := blake3.New()
	_, _ = h.Write(data)
	_, _ = fmt.Fprintf(h, "\x00%g\x00%g", t.options.TimeScale, t.options.SizeScale)
	w.digest = fmt.Sprintf("%x", h.Sum(nil)[:16])
	return w
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

func (t *trace) job(task *traceTask) NewJob {
	j := NewJob{
		Job: dispatch.Job{
			Name: task.specification.ID, Step: category(task.specification),
			Reads: task.reads, Needs: dispatch.Resources{MilliCPUs: 1000},
		},
		Command: Command{Replay: &Replay{
			Compute: time.Duration(math.Round(min(task.execution.Runtime*t.options.TimeScale*1e9, float64(maxReplay)))),
			Writes:  task.writes,
			Program: task.execution.Command.Program,
		}},
	}
	for _, w := range task.writes {
		j.Job.Writes = append(j.Job.Writes, dispatch.Output{LFN: w.LFN})
	}
	j.Job.Digest = digest(j)
	return j
}

// maxReplay bounds the time of one job of a trace.
const maxReplay = 100 * 365 * 24 * time.Hour

// startTrace creates the jobs of a trace, once its outside files are there.
func (f *Flow) startTrace() {
	states := map[string]*stepState{}
	for _, st := range f.steps {
		states[st.step.name] = st
	}
	for i, new := range f.w.fixed {
		st := states[new.Job.Step]
		st.held++
		f.ready.Push(readyJob{&job{key: key{wave: f.wave, first: i, name: new.Job.Name}, state: st, new: new}})
	}
}
