package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
)

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

// Values are those that a placeholder takes: a file lists them, or gives their
// number, and then they are 1, 2, and so on.
type Values []string

// MaxValues bounds the values of one placeholder, and the files that match one
// output.
const MaxValues = 1_000_000

// UnmarshalYAML reads either form.
func (v *Values) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return n.Decode((*[]string)(v))
	}
	count, err := strconv.Atoi(n.Value)
	if err != nil || count < 0 || count > MaxValues {
		return fmt.Errorf("line %d: %q: a list of values or their number, at most %d, is expected", n.Line, n.Value, MaxValues)
	}
	*v = serials(count)
	return nil
}

func serials(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i + 1)
	}
	return list
}

// parseFile reads the workflow file of an experiment.
func (s *WorkflowSpec) parseFile() (*flow.Workflow, error) {
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
	parsed, err := s.parseFile()
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
	case !s.Every.zero() && !in.Watch && in.URLList == "":
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

// files imagines the files of a declared input, in the order of the values.
func (s *InputSpec) files(in *flow.DeclaredInput) []string {
	combinations := []map[string]string{{}}
	for _, name := range in.Placeholders() {
		values, given := s.Values[name]
		if !given {
			values = serials(1)
		}
		combinations = with(combinations, name, values)
	}
	var lfns []string
	seen := map[string]bool{}
	for _, values := range combinations {
		for _, lfn := range in.Named(values) {
			if !seen[lfn] {
				seen[lfn] = true
				lfns = append(lfns, lfn)
			}
		}
	}
	return lfns
}

// with adds each value of one more placeholder to each combination.
func with(combinations []map[string]string, name string, values []string) []map[string]string {
	var all []map[string]string
	for _, c := range combinations {
		for _, value := range values {
			next := map[string]string{name: value}
			for k, v := range c {
				next[k] = v
			}
			all = append(all, next)
		}
	}
	return all
}

// model makes the task that stands for a job of the workflow file. Its draws
// depend on the name of the job alone.
func (u *unfolding) model(j *flow.NewJob) task {
	t := task{job: j.Job, made: []made{}}
	t.job.Needs = dispatch.Resources{Time: j.Job.Needs.Time}
	t.job.Tools = nil
	s := u.run.exp.Workflow.Steps[j.Job.Step]
	own := stream(u.run.seed, "job", named(j.Job.Name))
	if j.Counts {
		t.run = u.counting(&s, own)
		t.made = append(t.made, u.counted(j))
		return t
	}
	read := u.bytesFrom(j)
	run := s.Run
	if run.zero() {
		run = u.run.exp.Workflow.Run
	}
	t.run = run.draw(own) + time.Duration(float64(s.PerGB)*read/1e9)
	u.imagine(&t, &s, read)
	t.prepare(u.run.exp, own)
	return t
}

func (u *unfolding) counting(s *StepSpec, own *rand.Rand) time.Duration {
	if s.Count.zero() {
		return time.Second
	}
	return s.Count.draw(own)
}

// counted is the empty file whose name is the number of records.
func (u *unfolding) counted(j *flow.NewJob) made {
	pattern, lfn := j.Job.Writes[0].LFN, j.Job.Reads[0]
	if u.records[lfn] == 0 {
		u.run.fail("job %s splits %s, and the experiment does not say how many records that has: give records under workflow.inputs or workflow.steps", j.Job.Name, lfn)
	}
	return made{extant{strings.TrimSuffix(pattern, "*") + strconv.FormatInt(u.records[lfn], 10), 0}, pattern}
}

// bytesFrom counts the bytes that a job was made from; of a file that is split
// those of its records. A job that is made from none counts as if from one.
func (u *unfolding) bytesFrom(j *flow.NewJob) float64 {
	if j.From == 0 {
		return float64(u.run.exp.Workflow.FileSize)
	}
	var bytes int64
	for _, lfn := range j.Job.Reads[:j.From] {
		bytes += u.run.work.sizes[lfn]
	}
	return float64(bytes) * u.share(j)
}

// share is the part of its first input that a job of a split takes.
func (u *unfolding) share(j *flow.NewJob) float64 {
	first, err1 := strconv.ParseInt(j.Command.Environment["first"], 10, 64)
	last, err2 := strconv.ParseInt(j.Command.Environment["last"], 10, 64)
	if err1 != nil || err2 != nil || u.records[j.Job.Reads[0]] == 0 {
		return 1
	}
	all := u.records[j.Job.Reads[0]]
	return float64(last-first+1) / float64(all)
}

// imagine says what a job writes.
func (u *unfolding) imagine(t *task, s *StepSpec, read float64) {
	for _, o := range t.job.Writes {
		if !o.Pattern {
			t.made = append(t.made, made{extant{lfn: o.LFN}, ""})
			continue
		}
		for _, n := range serials(max(s.Files, 1)) {
			t.made = append(t.made, made{extant{lfn: strings.ReplaceAll(o.LFN, "*", n)}, o.LFN})
		}
	}
	size := s.sizeOf(read, len(t.made))
	for i := range t.made {
		t.made[i].size = size
		u.run.work.sizes[t.made[i].lfn] = size
		u.records[t.made[i].lfn] = s.Records
	}
}

// sizeOf is the size of each of n outputs of a job that reads so many bytes.
func (s *StepSpec) sizeOf(read float64, n int) int64 {
	switch {
	case s.Size > 0:
		return int64(s.Size)
	case n == 0:
		return 0
	case s.Ratio > 0:
		read *= s.Ratio
	}
	return int64(read / float64(n))
}
