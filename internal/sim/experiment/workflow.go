package experiment

import (
	"fmt"
	"os"
	"slices"
	"time"

	"fairway/internal/flow"
)

// WorkflowSpec says where the jobs come from: Pattern, Trace or File.
type WorkflowSpec struct {
	Pattern   string   `yaml:"pattern"`    // W1, W2-shared, W2-pairs, W3, Tier0, layers
	Trace     string   `yaml:"trace"`      // a WfFormat file, beside the experiment file
	File      string   `yaml:"file"`       // a workflow file of Fairway, beside the experiment file
	FileSize  Size     `yaml:"file_size"`  // of each file of a pattern; of inputs of a workflow file
	Run       Gauss    `yaml:"run"`        // of each job of a pattern or workflow file, without access to storage
	Accesses  int      `yaml:"accesses"`   // a job reads each input in so many accesses, spread over its run
	Jobs      int      `yaml:"jobs"`       // of layers: in all
	Layers    int      `yaml:"layers"`     // of layers: jobs of one layer read files of the one before
	Fan       int      `yaml:"fan"`        // of layers: files that each job reads
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

func (s *WorkflowSpec) check() error {
	switch {
	case count(s.Pattern != "", s.Trace != "", s.File != "") != 1:
		return atPath("workflow", "needs one of pattern, trace and file")
	case s.Trace != "" && !readable(s.Trace):
		return atPath("workflow.trace", "%s cannot be read: give the path of a WfFormat file, as seen from this one", s.Trace)
	case s.File == "" && (s.Parameters != nil || s.Inputs != nil || s.Steps != nil):
		return atPath("workflow", "parameters, inputs and steps are for a workflow file: add file: PATH")
	case s.Accesses < 1:
		return atPath("workflow.accesses", "a job reads a file in at least one access")
	case s.Pattern != "" && !slices.Contains(Patterns, s.Pattern):
		return atPath("workflow.pattern", "%q is unknown; known are W1, W2-shared, W2-pairs, W3, Tier0 and layers", s.Pattern)
	case s.Pattern == "layers" && (s.Jobs < 1 || s.Layers < 1 || s.Fan < 0 || s.Jobs > 1<<24):
		return atPath("workflow", "layers needs jobs (at most %d), layers and fan", 1<<24)
	case s.File != "":
		return s.checkFile()
	}
	return s.Tier0.check()
}

func readable(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

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
func (s *WorkflowSpec) ReadFile() (*flow.Workflow, error) {
	data, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("read the workflow: %w", err)
	}
	parsed, err := flow.Parse(s.File, data)
	if err != nil {
		return nil, err
	}
	return parsed.With(s.Parameters)
}

// checkFile compares what the experiment says of a workflow file with it.
func (s *WorkflowSpec) checkFile() error {
	parsed, err := s.ReadFile()
	if err != nil {
		return atPath("workflow.file", "%v", err)
	}
	for name, step := range s.Steps {
		path := "workflow.steps." + name
		if err := oneOf(path, name, parsed.Steps()...); err != nil {
			return err
		}
		if step.Files < 0 || step.Files > MaxValues || step.Records < 0 || step.Ratio < 0 || step.PerGB < 0 {
			return atPath(path, "negative numbers mean nothing here, and more than %d files are too many", MaxValues)
		}
	}
	known := map[string]*flow.DeclaredInput{}
	var names []string
	for _, in := range parsed.Inputs {
		known[in.Name] = in
		names = append(names, in.Name)
	}
	for name, input := range s.Inputs {
		path := "workflow.inputs." + name
		if err := oneOf(path, name, names...); err != nil {
			return err
		}
		if err := input.check(path, known[name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *InputSpec) check(path string, in *flow.DeclaredInput) error {
	for name := range s.Values {
		if err := oneOf(path+".values."+name, name, in.Placeholders()...); err != nil {
			return err
		}
	}
	switch {
	case s.Records < 0:
		return atPath(path+".records", "a file has no negative number of records")
	case !s.Every.IsZero() && !in.Watch && in.URLList == "":
		return atPath(path+".every", "the input has all its files from the start: only one with watch or url_list gets more")
	}
	return nil
}

// checkInputs makes sure that inputs lie on storage elements that there are.
func (e *Experiment) checkInputs() error {
	var names []string
	for _, s := range e.Storage {
		names = append(names, s.Name)
	}
	for _, home := range e.Workflow.Home {
		if err := oneOf("workflow.home", home, names...); err != nil {
			return err
		}
	}
	for name, in := range e.Workflow.Inputs {
		if in.Storage != "" {
			if err := oneOf("workflow.inputs."+name+".storage", in.Storage, names...); err != nil {
				return err
			}
		}
	}
	return nil
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

func (s *Tier0Spec) check() error {
	names := map[string]bool{}
	for _, step := range s.Steps {
		path := "workflow.tier0.steps"
		switch {
		case step.Name == "" || names[step.Name]:
			return atPath(path, "step %q: every one needs a name of its own", step.Name)
		case step.Jobs < 1 || step.Jobs > MaxValues || step.Merge < 1:
			return atPath(path+"."+step.Name, "step %s: needs jobs (1 to %d), and in merge how many of their outputs are merged into one", step.Name, MaxValues)
		}
		names[step.Name] = true
	}
	if s.MergeRun < 0 {
		return atPath("workflow.tier0.merge_run", "a merge takes a part of another job's run time, such as 0.1")
	}
	return nil
}
