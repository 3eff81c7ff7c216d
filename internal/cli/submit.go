//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/process"
	"fairway/internal/quantity"
	"fairway/internal/server/convert"
	"fairway/internal/server/feed"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// commandLine is what exec and map are told: one step without a workflow file.
type commandLine struct {
	step     string // exec or map
	each     []string
	reads    []string
	writes   []string
	needs    []string
	attempts int
	priority int32

	checkpoint string
	tasks      int
	nodes      int
	once       bool
	print      bool
	words      []string // of the command
}

func (c *commands) execCommand() *cobra.Command {
	l := &commandLine{step: execStep}
	return c.submitting(l, &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run one command as a job",
		Long: `Run one command as a job of the open run of this folder, and print what it printed.
If no run is open here, exec opens one and closes it again. The command sees the
files of --reads in a folder of its own; those of --writes are put into results/.
The same command with the same files, and the same values of the variables that its
text names, does not run again; a killed call may be repeated.

With --server the job goes to a server that takes workflows, which must see the
files under the same paths: to its open run --run, or to one of its own. Results are
in results/NUMBER/ there; ` + "`fairway get NAME --run NUMBER`" + ` brings them.`,
		Example: `  fairway exec -- hostname
  fairway exec --reads a.txt --writes b.txt -- 'sort "$in" > "$out"'
  fairway exec --site cluster --needs cpus=8 --needs memory=16GB -- ./simulate`,
	})
}

func (c *commands) mapCommand() *cobra.Command {
	l := &commandLine{step: mapStep}
	command := c.submitting(l, &cobra.Command{
		Use:   "map --each PATTERN --writes PATTERN [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command for each file, as jobs",
		Long: `Run a command for each file that a pattern matches, as jobs of a run as with exec.
{x} in the pattern stands for a part of the name, and has the same value in
--writes; the outputs are put into results/. The command finds its input in $in, its
output in $out, and the value in $x; in a command of several words, those that are
{in}, {out} or {x} are replaced. What is done is not done again: after a crash, or
with more files, repeat the call.`,
		Example: `  fairway map --each 'data/{x}.gz' --writes 'out/{x}.txt' -- 'zcat "$in" | sort > "$out"'
  fairway map --each 'in/{x}.png' --writes 'small/{x}.jpg' -- convert {in} -resize 50% {out}`,
	})
	command.Flags().StringArrayVar(&l.each, "each", nil, "pattern of the files, such as 'data/{x}.gz' (may be repeated)")
	return command
}

func (c *commands) submitting(l *commandLine, command *cobra.Command) *cobra.Command {
	o := newRunOptions()
	command.Args = l.arguments
	command.RunE = func(command *cobra.Command, words []string) error {
		l.words = words
		text, err := l.workflow()
		if err != nil {
			return err
		}
		if l.print {
			fmt.Fprintf(c.Out, "%s", text)
			return nil
		}
		if err := c.prepareOpen(command, o, openName); err != nil {
			return err
		}
		work, err := workflow.Parse("what --print shows", text)
		if err != nil {
			return &console.Failure{Code: console.ExitUsage, Err: err}
		}
		o.pilots.Demands = work.Demands()
		if c.Service != "" {
			if err := refuseHere(command); err != nil {
				return err
			}
			return c.submitAtServer(command.Context(), o, l, work)
		}
		if err := c.RefuseGroup(); err != nil {
			return err
		}
		return c.submit(command.Context(), o, l, work)
	}
	flags := command.Flags()
	flags.StringArrayVar(&l.reads, "reads", nil, "a further `file` that the command reads (may be repeated)")
	flags.StringArrayVar(&l.writes, "writes", nil, "a `file` that the command writes (may be repeated)")
	flags.StringArrayVar(&l.needs, "needs", nil, "what it needs: cpus=2, memory=4GB, disk, time, or what a site names "+
		"(may be repeated)")
	flags.StringVar(&l.checkpoint, "checkpoint", "", "a `folder` such as state/ in which the command saves its state: a "+
		"job that is ended before its time goes on from there")
	flags.IntVar(&l.tasks, "tasks", 0, "so many tasks that begin together, each with what --needs says")
	flags.IntVar(&l.nodes, "nodes", 0, "as --tasks, each on a node of its own")
	flags.BoolVar(&l.once, "once", false, "with --tasks or --nodes: only the first runs the command, as for mpirun")
	flags.IntVar(&l.attempts, "attempts", 1, "how often a job is tried in all")
	flags.Int32Var(&l.priority, "priority", 0, "a number: of your ready jobs, higher ones go first")
	flags.BoolVar(&l.print, "print", false, "print the workflow file that this stands for, and run nothing")
	c.GroupFlag(command)
	c.serverFlags(command, o)
	return command
}

// arguments refuses what stands before the --: it is no part of the command, but mostly file names
// that a shell has put in place of a pattern of --each without quotes.
func (l *commandLine) arguments(command *cobra.Command, words []string) error {
	if n := command.ArgsLenAtDash(); n > 0 {
		return fmt.Errorf("%s takes no %q before the --; quote patterns, since the shell replaces * by names of files",
			command.Name(), words[0])
	}
	if l.step == mapStep && len(l.each) == 0 {
		return fmt.Errorf("%s needs --each: %s", command.Name(), command.UseLine())
	}
	return console.Takes(1, console.AnyNumber, "COMMAND")(command, words)
}

// The steps of what exec and map submit.
const (
	execStep = "exec"
	mapStep  = "map"
)

// asWord is a word of a command that stands for a variable.
var asWord = regexp.MustCompile(`^\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

func (l *commandLine) command() string {
	if len(l.words) == 1 {
		return l.words[0]
	}
	words := make([]string, len(l.words))
	for i, word := range l.words {
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

func (l *commandLine) placeholders() string {
	return strings.Join(slices.Compact(placeholder.FindAllString(strings.Join(l.each, " "), -1)), "/")
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
func (l *commandLine) variables() (list []string) {
	if len(l.words) != 1 { // quoted: the shell of the job expands nothing
		return nil
	}
	given := slices.Concat(process.Handed, ofNode, strings.FieldsFunc(l.placeholders(), func(r rune) bool {
		return strings.ContainsRune("{}/", r)
	}))
	for _, m := range named.FindAllStringSubmatch(l.words[0], -1) {
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

func (l *commandLine) workflow() ([]byte, error) {
	var file struct {
		Workflow   string             `yaml:"workflow"`
		Parameters map[string]string  `yaml:"parameters,omitempty"`
		Inputs     map[string]inputOf `yaml:"inputs,omitempty"`
		Steps      map[string]stepOf  `yaml:"steps"`
	}
	file.Workflow, file.Parameters, file.Inputs = l.step, map[string]string{}, map[string]inputOf{}
	literal := func(names []string, special *regexp.Regexp) []string {
		return convert.Each(names, func(name string) string {
			return special.ReplaceAllStringFunc(name, func(text string) string {
				parameter := fmt.Sprint("literal", len(file.Parameters)+1)
				file.Parameters[parameter] = text
				return "${" + parameter + "}"
			})
		})
	}
	reads, writes := literal(l.reads, noPattern), l.writes
	if len(l.each) == 0 {
		reads, writes = literal(l.reads, noPlaceholder), literal(l.writes, noPlaceholder)
	}
	step := stepOf{Writes: writes, Command: l.command(), State: l.checkpoint, Tasks: l.tasks, Nodes: l.nodes, Once: l.once}
	step.Priority = l.priority
	step.Variables = literal(l.variables(), noPlaceholder)
	if len(step.Writes) == 0 {
		if l.print {
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
	step.Each, step.Reads = declare("each", l.each), declare("reads", reads)
	for i, as := range step.Each {
		if strings.ContainsAny(as, "*?") {
			return nil, console.Fail(console.ExitUsage, "write a placeholder such as {x} in its place, and in --writes",
				"--each %s has a wildcard, which gives the outputs no names", l.each[i])
		}
	}
	if l.attempts > 0 {
		step.Retry = map[string]int{"attempts": l.attempts}
	}
	for _, need := range l.needs {
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
	file.Steps = map[string]stepOf{l.step: step}
	return yaml.Marshal(file)
}

func (l *commandLine) jobs(
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
		if len(l.writes) == 0 {
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

// awaitJobs waits until jobs of a run have come to their ends.
func awaitJobs(ctx context.Context, client wire.WorkflowClient, refs []*wire.SubmittedRef) error {
	stream, err := client.Progress(ctx, &wire.ProgressRequest{Follow: true})
	if err != nil {
		return console.Explained(err)
	}
	defer stream.Close()
	for done := 0; stream.Receive(); {
		for ; done < len(refs); done++ {
			job, err := client.ShowJob(ctx, &wire.ShowJobRequest{Job: refs[done].GetName()})
			if err != nil {
				return console.Explained(err)
			}
			if !ended(job.GetSummary()) {
				break
			}
		}
		if done == len(refs) {
			return nil
		}
	}
	return console.Explained(stream.Err())
}

// ended reports whether a job runs no more, unless a person has it tried again.
func ended(job *wire.JobSummary) bool {
	return slices.Contains([]string{
		taskqueue.Done.String(), taskqueue.Failed.String(), taskqueue.Blocked.String(), taskqueue.Cancelled.String(),
	}, job.GetState())
}

type calledJobs struct {
	Jobs  int `json:"jobs"`
	Known int `json:"known"`
	Left  int `json:"left"`
}

// concludeJobs prints how the jobs of a call ended: what they printed, where they write nothing,
// else how many are done; and which are not. report is what a person was shown when the run ended
// with the call, nil where it goes on: it says where results are, and names failures already.
func (c *commands) concludeJobs(
	l *commandLine, refs []*wire.SubmittedRef, report *wire.ProgressReport, ask func(console.Asking) error,
) error {
	return ask(func(ctx context.Context, client wire.WorkflowClient) error {
		known, ours := 0, make(map[uint32]bool, len(refs))
		for _, ref := range refs {
			if ours[ref.GetId()] = true; ref.GetKnown() && ref.GetState() == taskqueue.Done.String() {
				known++
			}
		}
		var left []*wire.JobSummary
		for job, err := range console.AllJobs(ctx, client, &wire.ListJobsRequest{Steps: []string{l.step}, States: notDone}) {
			if err != nil {
				return err
			}
			if ours[job.GetId()] {
				left = append(left, job)
			}
		}
		cut := &cutNotice{Writer: c.Out}
		if len(l.writes) == 0 && !c.JSON {
			defer func(out io.Writer) { c.Out = out }(c.Out)
			c.Out = cut
			for _, ref := range refs {
				if err := c.PrintLogs(ctx, client, &wire.LogsRequest{Job: ref.GetName()}); err != nil &&
					connect.CodeOf(err) != connect.CodeNotFound {
					return err
				}
			}
		} else {
			_ = c.Answer(calledJobs{len(refs), known, len(left)}, func() {
				text := fmt.Sprintf("%s: %d of %s done, %d of them known before", l.step, len(refs)-len(left),
					quantity.Count(int64(len(refs)), "job"), known)
				if results := report.GetSummary().GetResults(); results != "" && len(left) < len(refs) {
					text += "; results in " + screen.OneLine(screen.DisplayPath(results)) + "/"
				}
				fmt.Fprintln(c.Out, text)
			})
		}
		c.Concluded = true
		for _, job := range left[:min(len(left), maxLeftShown)] {
			line := fmt.Sprintf("job %s %s: %s", job.GetName(), job.GetState(), job.GetReason())
			if c.JSON || !slices.Contains(report.GetProblems(), line) {
				fmt.Fprintf(c.Err, "fairway: %s\n", screen.OneLine(line))
			}
		}
		if more := len(left) - maxLeftShown; more > 0 {
			fmt.Fprintf(c.Err, "fairway: and %d more; `fairway jobs --state failed` lists them\n", more)
		}
		if len(left) > 0 {
			return console.Quietly(console.ExitFailed)
		}
		if cut.seen {
			return console.Fail(console.ExitFailed, "write it to a file that --writes names",
				"the middle of what the command printed is left "+
					"out: there was no room for it on the disk of the pilot")
		}
		return nil
	})
}

// cutNotice looks for the notice that stands in the log of a job where something is left out.
type cutNotice struct {
	io.Writer
	end  []byte // of what was written, shorter than the notice
	seen bool
}

// Write is part of io.Writer.
func (w *cutNotice) Write(text []byte) (int, error) {
	w.end = append(w.end, text...)
	w.seen = w.seen || bytes.Contains(w.end, []byte(process.CutNotice))
	w.end = append([]byte(nil), w.end[max(0, len(w.end)-len(process.CutNotice)+1):]...)
	return w.Writer.Write(text)
}

// notDone are the states of jobs that have no result.
var notDone = []string{
	taskqueue.Waiting.String(), taskqueue.Ready.String(), taskqueue.Assigned.String(), taskqueue.Running.String(),
	taskqueue.Failed.String(), taskqueue.Blocked.String(), taskqueue.Cancelled.String(),
}

// maxLeftShown bounds the jobs of which map says why they are not done.
const maxLeftShown = 5
