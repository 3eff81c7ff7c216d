package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/yamlfile"
)

// WorkflowSpec says where the jobs come from: Pattern, Trace or File.
type WorkflowSpec struct {
	Pattern  string `yaml:"pattern"`   // W1, W2-shared, W2-pairs, W3, Tier0, layers
	Trace    string `yaml:"trace"`     // a WfFormat file, beside the experiment file
	File     string `yaml:"file"`      // a workflow file of Fairway, beside the experiment file
	FileSize Size   `yaml:"file_size"` // of each file of a pattern; of inputs of a workflow file
	Run      Gauss  `yaml:"run"`       // of each job of a pattern or workflow file, without access to storage
	Accesses int    `yaml:"accesses"`  // a job reads each input in so many accesses, spread over its run
	Jobs     int    `yaml:"jobs"`      // of layers: in all; of W1, W2 and W3: of the step with the most, an even number, 0 means 80
	Layers   int    `yaml:"layers"`    // of layers: jobs of one layer read files of the one before
	Fan      int    `yaml:"fan"`       // of layers: files that each job reads
	// Priorities is, of layers, how many priorities there are: each job has one of them.
	Priorities int `yaml:"priorities"`
	// Gangs is, of layers, the part of the jobs that have 2 to Tasks tasks, which run together.
	Gangs Chance `yaml:"gangs"`
	Tasks int    `yaml:"tasks"`
	// Rivals is, of layers, how many jobs without files each of three other users submits meanwhile.
	Rivals    int      `yaml:"rivals"`
	Raw       bool     `yaml:"raw"`        // of layers: each job of the first reads a file that exists before the run
	Home      []string `yaml:"home"`       // storage elements that share what exists before the run, each an equal part of the files, in their order; default: the first
	Cached    Chance   `yaml:"cached"`     // of an output that is read to stay in caches only
	Scale     float64  `yaml:"scale"`      // of a trace: factor of run times; 0 means 1
	SizeScale float64  `yaml:"size_scale"` // of a trace: factor of file sizes; 0 means 1
	States    float64  `yaml:"states"`     // jobs say that they need so many times their run time; 0: they say nothing

	RoundTo time.Duration `yaml:"round_to"` // what jobs say that they need is rounded up to a multiple of it; 0 means 10 min
	Tier0   Tier0Spec     `yaml:"tier0"`    // of the pattern Tier0: how its steps share jobs and bytes

	Parameters map[string]string    `yaml:"parameters"` // of a workflow file
	Inputs     map[string]InputSpec `yaml:"inputs"`     // of a workflow file: what there is of each, by name
	Steps      map[string]StepSpec  `yaml:"steps"`      // of a workflow file: what stands for the commands, by step
}

// Patterns are the workflows that an experiment can name: those of paper 3,
// section V, and one for scale.
var Patterns = []string{"W1", "W2-shared", "W2-pairs", "W3", "Tier0", "layers"}

// InputSpec says what there is of a declared input of a workflow file: one
// file for each combination of the values of its placeholders.
type InputSpec struct {
	Values  map[string]Values `yaml:"values"`  // by placeholder, "*" for wildcards; default: 1
	Size    Size              `yaml:"size"`    // of each file; 0: workflow.file_size
	Records int64             `yaml:"records"` // of each file, for steps that split it
	Storage string            `yaml:"storage"` // the element that holds them; default: the first
	Every   Gauss             `yaml:"every"`   // of an input that stays open: from one file to the next; 0: all at the start
}

// StepSpec models the command of a step of a workflow file.
type StepSpec struct {
	Run     Gauss         `yaml:"run"`     // of each job, without access to storage; 0: workflow.run
	PerGB   time.Duration `yaml:"per_gb"`  // run time besides for each GB of the files that the job was made from
	Size    Size          `yaml:"size"`    // of each output; 0: by ratio
	Ratio   float64       `yaml:"ratio"`   // of the bytes of all outputs to those of the files that the job was made from; 0 means 1
	Files   int           `yaml:"files"`   // that match an output whose names are chosen by content; 0 means 1
	Records int64         `yaml:"records"` // of each output, for steps that split it
	Count   Gauss         `yaml:"count"`   // of a job that counts the records of a file for this step; 0: 1 s
}

func (r *reader) checkWorkflow(s *WorkflowSpec) {
	switch {
	case count(s.Pattern != "", s.Trace != "", s.File != "") != 1:
		r.wrong("workflow", "give one of pattern, trace and file", "the jobs must come from one place")
		return
	case s.File != "":
		r.checkFile(s)
	case s.Parameters != nil || s.Inputs != nil || s.Steps != nil:
		r.wrong("workflow", "add file: PATH", "parameters, inputs and steps are for a workflow file")
	}
	if s.Trace != "" {
		f, err := os.Open(s.Trace)
		if err != nil {
			r.wrong("workflow.trace", "give the path of a WfFormat file, as seen from this one", "%s cannot be read", s.Trace)
		} else {
			_ = f.Close()
		}
	}
	if s.Pattern != "" {
		oneOf(r, "workflow.pattern", s.Pattern, Patterns...)
	}
	if strings.HasPrefix(s.Pattern, "W") && (s.Jobs < 2 || s.Jobs%2 != 0 || s.Jobs > MaxJobs) {
		r.wrong("workflow.jobs", fmt.Sprintf("give an even number of jobs, at most %d", MaxJobs), "%d jobs are no step of %s",
			s.Jobs, s.Pattern)
	}
	if s.Pattern == "layers" && (s.Jobs < 1 || s.Layers < 1 || s.Jobs > MaxJobs) {
		r.wrong("workflow", fmt.Sprintf("give jobs (at most %d), layers and fan", MaxJobs),
			"layers of no jobs, or of too many")
	}
	r.checkTier0(s.Tier0.Steps)
}

// MaxJobs bounds the jobs of a pattern.
const MaxJobs = 1 << 24

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// ReadFile reads the workflow file that it names, with its parameters.
func (s *WorkflowSpec) ReadFile() (*workflow.Workflow, error) {
	data, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("read the workflow: %w", err)
	}
	parsed, err := workflow.Parse(s.File, data)
	if err != nil {
		return nil, err
	}
	return parsed.With(s.Parameters)
}

// checkFile compares what the experiment says of a workflow file with it.
func (r *reader) checkFile(s *WorkflowSpec) {
	parsed, err := s.ReadFile()
	if problems, ok := errors.AsType[yamlfile.Problems](err); ok {
		r.Problems = append(r.Problems, problems...)
		return
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		r.wrong("workflow.file", "give the path of a workflow file, as seen from this one", "%v", err)
		return
	}
	if err != nil {
		r.wrong("workflow.parameters", "give values for parameters that the workflow has, and for all without a default",
			"%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	for name, step := range s.Steps {
		path := "workflow.steps." + name
		oneOf(r, path, name, parsed.StepNames()...)
		if step.Files > MaxValues {
			r.wrong(path+".files", fmt.Sprintf("write at most %d", MaxValues), "%d files are too many", step.Files)
		}
	}
	known := map[string]*workflow.DeclaredInput{}
	var names []string
	for _, in := range parsed.Inputs {
		known[in.Name] = in
		names = append(names, in.Name)
	}
	for name, input := range s.Inputs {
		path := "workflow.inputs." + name
		in := known[name]
		if in == nil {
			oneOf(r, path, name, names...)
			continue
		}
		for placeholder := range input.Values {
			oneOf(r, path+".values."+placeholder, placeholder, in.Placeholders()...)
		}
		if !input.Every.IsZero() && !in.Watch && in.URLList == "" {
			r.wrong(path+".every", "remove it, or let the workflow watch the input or read a url_list",
				"the input has all its files from the start")
		}
	}
}

// Tier0Spec divides the jobs and bytes of the pattern Tier0, the workflow of
// paper 3, sections III and V, among its steps. The paper gives 172 jobs that
// read 83.41 GB and write 112 GB, and says neither how the steps share them
// nor how long a merge takes; so these are assumptions of the experiment.
type Tier0Spec struct {
	Input    Size        `yaml:"input"`     // bytes that exist before, a file for each job of the first step; 0 means 83.41GB
	MergeRun float64     `yaml:"merge_run"` // run time of a merge, as a part of another job's; 0 means 0.1
	Steps    []Tier0Step `yaml:"steps"`     // in their order; none means tier0Steps
}

// Tier0Step is a processing step and the merges that join its outputs. The
// merges write as many bytes as they read.
type Tier0Step struct {
	Name   string `yaml:"name"`
	Jobs   int    `yaml:"jobs"`   // without the merges; each reads one file of the step before
	Writes Size   `yaml:"writes"` // bytes of all of these jobs
	Merge  int    `yaml:"merge"`  // outputs that go into one merge; the last may get fewer
}

// tier0Steps is one division that follows the paper's two rules: every job
// writes less than it reads, and a merge writes what it reads. 60+60+36 jobs
// and 6+6+4 merges are 172; 2·(32+18+6) GB are 112.
var tier0Steps = []Tier0Step{
	{Name: "repack", Jobs: 60, Writes: 32e9, Merge: 10},
	{Name: "reco", Jobs: 60, Writes: 18e9, Merge: 10},
	{Name: "alca", Jobs: 36, Writes: 6e9, Merge: 9},
}

func (s *Tier0Spec) defaults() {
	setDefault(&s.Input, 83.41e9)
	setDefault(&s.MergeRun, 0.1)
	if len(s.Steps) == 0 {
		s.Steps = tier0Steps
	}
}

func (r *reader) checkTier0(steps []Tier0Step) {
	names := map[string]bool{}
	for _, step := range steps {
		const path = "workflow.tier0.steps"
		if step.Name == "" || names[step.Name] {
			r.wrong(path, "give each a name of its own", "two steps are named %q", step.Name)
		}
		if step.Jobs < 1 || step.Jobs > MaxValues || step.Merge < 1 {
			r.wrong(path+"."+step.Name, fmt.Sprintf("give jobs, from 1 to %d, and in merge how many of their outputs go into "+
				"one merge", MaxValues), "a step needs jobs and merge")
		}
		names[step.Name] = true
	}
}
