//go:build linux

// Package call makes the workflow of one step, and the jobs, that a call of exec or map stands for.
package call

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/cli/console"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/process"
	"fairway/internal/quantity"
	"fairway/internal/server/convert"
	"fairway/internal/server/feed"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// The steps of what exec and map submit.
const (
	Exec = "exec"
	Map  = "map"
)

// Call is what exec and map are told: one step without a workflow file.
type Call struct {
	Step     string // Exec or Map
	Each     []string
	Reads    []string
	Writes   []string
	Needs    []string
	Attempts int
	Priority int32

	Checkpoint string
	Tasks      int
	Nodes      int
	Once       bool
	Words      []string // of the command
}

// asWord is a word of a command that stands for a variable.
var asWord = regexp.MustCompile(`^\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

func (l *Call) command() string {
	if len(l.Words) == 1 {
		return l.Words[0]
	}
	words := make([]string, len(l.Words))
	for i, word := range l.Words {
		if m := asWord.FindStringSubmatch(word); m != nil {
			words[i] = `"$` + m[1] + `"`
		} else if plainWord.MatchString(word) {
			words[i] = word
		} else {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

type inputOf struct {
	Files string `yaml:"files"`
	As    string `yaml:"as"`
}

type stepOf struct {
	Each   []string       `yaml:"each,omitempty,flow"`
	Reads  []string       `yaml:"reads,omitempty,flow"`
	Writes []string       `yaml:"writes,omitempty,flow"`
	Needs  map[string]any `yaml:"needs,omitempty,flow"`
	Tasks  int            `yaml:"tasks,omitempty"`
	Nodes  int            `yaml:"nodes,omitempty"`
	Once   bool           `yaml:"once,omitempty"`
	Retry  map[string]int `yaml:"retry,omitempty,flow"`
	State  string         `yaml:"checkpoint,omitempty"`

	Priority  int32    `yaml:"priority,omitempty"`
	Variables []string `yaml:"variables,omitempty,flow"`

	Command string `yaml:"command"`
}

// nowhere is what a job writes for flow, which knows jobs by what they write, where --writes
// names nothing. A job of an open run is known by its name, and is submitted without it.
const nowhere = "nothing/"

func (l *Call) placeholders() string {
	return strings.Join(slices.Compact(placeholder.FindAllString(strings.Join(l.Each, " "), -1)), "/")
}

var placeholder = regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_]*\}`)

// What a name of --reads has that means something in the text of a workflow, and what any name of
// exec has, which has no placeholders: a parameter stands for it there, whose value is plain text.
var (
	noPattern     = regexp.MustCompile(`[*?$]+`)
	noPlaceholder = regexp.MustCompile(`[*?${}]+`)
)

var named = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)`)

// ofNode are variables, or how their names begin (with *), that a job is to have of its own, or of the
// node on which it runs.
var ofNode = []string{"in", "out", "PWD", "TMPDIR", "TMP", "TEMP", "HOSTNAME", "SHLVL", "FAIRWAY_*", "SLURM_*", "PBS_*",
	"SGE_*", "LSB_*", "PMI*", "OMPI_*", "CUDA_*", "ROCR_*", "OMP_NUM_THREADS"}

// variables are those of the shell that the command names, with their values: they decide what it does,
// so a call with other values is another call. Secrets, and who the user is, are no part of it.
func (l *Call) variables() (list []string) {
	if len(l.Words) != 1 { // quoted: the shell of the job expands nothing
		return nil
	}
	given := slices.Concat(process.Handed, ofNode, strings.FieldsFunc(l.placeholders(), func(r rune) bool {
		return strings.ContainsRune("{}/", r)
	}))
	for _, m := range named.FindAllStringSubmatch(l.Words[0], -1) {
		name := m[1]
		value, set := os.LookupEnv(name)
		if !set || process.IsSecret(name) || slices.ContainsFunc(given, func(other string) bool {
			beginning, open := strings.CutSuffix(other, "*")
			return name == other || open && strings.HasPrefix(name, beginning)
		}) {
			continue
		}
		if entry := name + "=" + value; !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	return list
}

// Workflow is the text of the workflow that a call stands for. One that is printed, and not run, must name
// what it writes.
func (l *Call) Workflow(printed bool) ([]byte, error) {
	var file struct {
		Workflow   string             `yaml:"workflow"`
		Parameters map[string]string  `yaml:"parameters,omitempty"`
		Inputs     map[string]inputOf `yaml:"inputs,omitempty"`
		Steps      map[string]stepOf  `yaml:"steps"`
	}
	file.Workflow, file.Parameters, file.Inputs = l.Step, map[string]string{}, map[string]inputOf{}
	literal := func(names []string, special *regexp.Regexp) []string {
		return convert.Each(names, func(name string) string {
			return special.ReplaceAllStringFunc(name, func(text string) string {
				parameter := fmt.Sprint("literal", len(file.Parameters)+1)
				file.Parameters[parameter] = text
				return "${" + parameter + "}"
			})
		})
	}
	reads, writes := literal(l.Reads, noPattern), l.Writes
	if len(l.Each) == 0 {
		reads, writes = literal(l.Reads, noPlaceholder), literal(l.Writes, noPlaceholder)
	}
	step := stepOf{Writes: writes, Command: l.command(), State: l.Checkpoint, Tasks: l.Tasks, Nodes: l.Nodes, Once: l.Once}
	step.Priority = l.Priority
	step.Variables = literal(l.variables(), noPlaceholder)
	if len(step.Writes) == 0 {
		if printed {
			return nil, console.Fail(console.ExitUsage, "name a file with --writes",
				"a step of a workflow file must write something")
		}
		step.Writes = []string{nowhere + l.placeholders() + "x"}
	}
	declare := func(kind string, patterns []string) (names []string) {
		for i, pattern := range patterns {
			as := pattern
			if !filepath.IsLocal(pattern) || workflow.IsURL(pattern) {
				as = pattern[strings.LastIndexByte(strings.TrimSuffix(pattern, "/"), '/')+1:]
			}
			file.Inputs[fmt.Sprintf("%s%d", kind, i+1)] = inputOf{pattern, as}
			names = append(names, as)
		}
		return names
	}
	step.Each, step.Reads = declare("each", l.Each), declare("reads", reads)
	for i, as := range step.Each {
		if strings.ContainsAny(as, "*?") {
			return nil, console.Fail(console.ExitUsage, "write a placeholder such as {x} in its place, and in --writes",
				"--each %s has a wildcard, which gives the outputs no names", l.Each[i])
		}
	}
	if l.Attempts > 0 {
		step.Retry = map[string]int{"attempts": l.Attempts}
	}
	for _, need := range l.Needs {
		name, amount, ok := strings.Cut(need, "=")
		if !ok || name == "" || amount == "" {
			return nil, console.Fail(console.ExitUsage, "write --needs cpus=2", "--needs %s names no amount", need)
		}
		if step.Needs == nil {
			step.Needs = map[string]any{}
		}
		var value any = amount
		if n, err := quantity.Whole(amount); err == nil {
			value = n
		}
		step.Needs[name] = value
	}
	file.Steps = map[string]stepOf{l.Step: step}
	return yaml.Marshal(file)
}

// Jobs are those of the workflow, which is that of the call, for the files that there are in a folder now.
func (l *Call) Jobs(
	ctx context.Context, folder string, work *workflow.Workflow,
) ([]*wire.SubmittedJob, error) {
	f, err := flow.New(work)
	if err != nil {
		return nil, err
	}
	find := feed.NewFinder(folder, elements.New(storage.Roots{Folder: folder}, sched.Default().Sleep))
	paths, made := map[string]string{}, []workflow.NewJob{}
	identities := map[string]string{}
	step := func(in flow.Input) error {
		effects, err := f.StepToEnd(time.Now(), in)
		made = append(made, effects.Submit...)
		return err
	}
	if err := step(flow.Tick{}); err != nil {
		return nil, err
	}
	for _, in := range f.Inputs() {
		files, _, err := find.Find(ctx, in, nil)
		if err != nil {
			return nil, &console.Failure{Code: console.ExitBadFile, Err: err}
		}
		for _, file := range files {
			paths[file.LFN], identities[file.LFN] = file.Path, file.Identity
		}
		if err := step(flow.Arrived{Input: in.Name, Files: files}); err != nil {
			return nil, &console.Failure{Code: console.ExitBadFile, Err: err}
		}
		if err := step(flow.Closed{Input: in.Name}); err != nil {
			return nil, err
		}
	}
	if refused := f.Refused(); len(refused) > 0 {
		return nil, console.Fail(console.ExitBadFile, "", "%s", strings.Join(refused, "; "))
	}
	jobs := make([]*wire.SubmittedJob, len(made))
	for i := range made {
		job := &made[i].Job
		if len(l.Writes) == 0 {
			job.Writes = nil
			delete(made[i].Command.Environment, "out")
			made[i].Command.WholeOutput = true // it is the result
		}
		marks := make([]string, len(job.Reads))
		for k, lfn := range job.Reads {
			marks[k] = identities[lfn]
		}
		// The jobs of a further call have other names, if they do something else.
		job.Name = workflow.NameOf(job, job.Name, marks)
		jobs[i] = convert.SubmittedToWire(&made[i], paths)
	}
	return jobs, nil
}
