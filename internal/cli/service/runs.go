package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/flow/workflow"
	"fairway/internal/quantity"
	"fairway/internal/wfformat"
	"fairway/internal/wire"
)

// SubmitOptions are the flags of submit.
type SubmitOptions struct {
	Parameters map[string]string
	Until      string
	KeepGoing  bool
	Results    string
	key        string
	upload     []string
	watch      bool
	Scales     workflow.Scales

	WaitAnyway bool
	NoReuse    bool
	Priority   int32
}

// SubmitCommand is `fairway submit`.
func (c *Commands) SubmitCommand() *cobra.Command {
	o := new(SubmitOptions)
	command := &cobra.Command{
		Use:   "submit [FILE]",
		Short: "Submit a workflow to a server",
		Long: `Submit the workflow that FILE describes (default: workflow.yaml) to a server that
takes workflows (` + "`fairway serve`" + `), and print the number of its run. Inputs are
relative to the folder of FILE, which the server must see under the same path.
Otherwise --upload sends them, 4 MiB at most, or they are URLs. FILE
can also be a recorded trace in WfFormat (JSON).`,
		Example: `  fairway submit workflow.yaml --server /data/fairway --set pairs=500 --watch
  fairway submit --key nightly-2026-11-27 --results s3://bucket/nightly
  fairway submit workflow.yaml --upload samples.csv --upload config/
  fairway submit trace.json --time-scale 0.01 --size-scale 0`,
		Args:              console.MaybeFile,
		ValidArgsFunction: console.WorkflowFiles,
		RunE: func(command *cobra.Command, arguments []string) error {
			file, dir, err := c.SubmittedFile(arguments)
			if err != nil {
				return err
			}
			request, err := Submission(file, dir, o)
			if err != nil {
				return err
			}
			return c.SubmitWorkflow(command.Context(), request, o.watch)
		},
	}
	command.Flags().BoolVar(&o.watch, "watch", false, "watch the run until it has ended")
	c.GroupFlag(command)
	c.SubmissionFlags(command, o)
	return command
}

// SubmissionFlags are those of what is submitted.
func (c *Commands) SubmissionFlags(command *cobra.Command, o *SubmitOptions) {
	flags := command.Flags()
	c.ParametersFlag(command, &o.Parameters)
	flags.StringVar(&o.Until, "until", "", "run only up to this step, or up to the step that writes this file")
	flags.BoolVar(&o.KeepGoing, "keep-going", false, "after a failure, go on with the jobs that do not depend on it")
	flags.StringVar(&o.Results, "results", "", "put the results into this `place` instead of results/ of the server: a "+
		"folder, or a URL (s3://bucket/folder, davs://, root://)")
	flags.Float64Var(&o.Scales.TimeScale, "time-scale", 1, "multiply the run times of a trace by this")
	flags.Float64Var(&o.Scales.SizeScale, "size-scale", 1, "multiply the file sizes of a trace by this")
	flags.BoolVar(&o.WaitAnyway, "wait-anyway", false, "wait for pilots even if no pilot of the server could ever run a "+
		"step, as it seems now")
	flags.BoolVar(&o.NoReuse, "no-reuse", false, NoReuseHelp)
	flags.Int32Var(&o.Priority, "priority", 0, PriorityHelp)
	flags.StringVar(&o.key, "key", "",
		"a `name` for this submission: a repeated one answers with the same run")
	flags.StringArrayVar(&o.upload, "upload", nil, "send this file or folder along, as an input (may be repeated)")
}

// PriorityHelp is the help of --priority.
const PriorityHelp = "a number that is added to the priority of each step: of your ready jobs, higher ones go first"

// NoReuseHelp is the help of --no-reuse.
const NoReuseHelp = "take no result of another run, also where command and inputs are the same"

// SubmittedFile finds the workflow file that is meant, and the folder of its inputs.
func (c *Commands) SubmittedFile(arguments []string) (file, dir string, err error) {
	file = filepath.Join(c.Dir, console.DefaultFile)
	if len(arguments) > 0 {
		file = arguments[0]
	}
	dir, err = filepath.Abs(filepath.Dir(file))
	return file, dir, err
}

// Submission is the request that submits a workflow, which is checked as far as it can be here.
func Submission(file, dir string, o *SubmitOptions) (*wire.SubmitWorkflowRequest, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, console.Fail(console.ExitBadFile, "name the workflow file: fairway submit FILE",
			"cannot read the workflow: %w", err)
	}
	workflow, err := wfformat.ParseEither(file, text, o.Scales)
	if err != nil {
		return nil, &console.Failure{Code: console.ExitBadFile, Err: err}
	}
	if _, err = console.Chosen(workflow, o.Parameters, o.Until, o.Priority); err != nil {
		return nil, err
	}
	request := &wire.SubmitWorkflowRequest{
		Priority: o.Priority,
		Workflow: text, File: filepath.Base(file), Folder: dir, Parameters: o.Parameters, Until: o.Until,
		KeepGoing: o.KeepGoing,
		Results:   o.Results, Key: o.key, WaitAnyway: o.WaitAnyway, NoReuse: o.NoReuse,
	}
	if wfformat.Is(text) {
		request.TimeScale, request.SizeScale = &o.Scales.TimeScale, &o.Scales.SizeScale
	}
	if o.Results != "" && !strings.Contains(o.Results, "://") {
		if request.Results, err = filepath.Abs(o.Results); err != nil {
			return nil, err
		}
	}
	if len(o.upload) == 0 {
		return request, nil
	}
	request.Folder = ""
	request.Uploads, err = uploads(dir, o.upload)
	return request, err
}

// uploads reads files and folders, which are named from the folder of the inputs on.
func uploads(dir string, names []string) (files []*wire.UploadedFile, err error) {
	size := int64(0)
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(at string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return console.Fail(console.ExitUsage, "name a file or folder there", "--upload %s: it is not in %s", name,
					console.FolderText(dir))
			}
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := os.Stat(at)
			if err != nil {
				return err
			}
			if size += info.Size(); size > wire.MaxUploads {
				return console.Fail(console.ExitUsage, "put the files where the server sees them, or name URLs",
					"the uploads have more than %s", quantity.Bytes(wire.MaxUploads))
			}
			relative, err := filepath.Rel(dir, at)
			if err == nil && !filepath.IsLocal(relative) {
				err = console.Fail(console.ExitUsage, "name files below that folder",
					"--upload %s is not in the folder of the inputs, %s", name, dir)
			}
			if err != nil {
				return err
			}
			content, err := os.ReadFile(at)
			files = append(files, &wire.UploadedFile{Path: filepath.ToSlash(relative), Content: content})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// SubmitWorkflow submits, and watches the run if that is wanted.
func (c *Commands) SubmitWorkflow(ctx context.Context, request *wire.SubmitWorkflowRequest, watch bool) error {
	answer, err := c.Submitted(ctx, request)
	if err != nil {
		return err
	}
	if watch {
		c.Announce(fmt.Sprintf("fairway: run %d", answer.GetRun()))
		return c.WatchRun(ctx, answer.GetRun())
	}
	return c.Answer(answer, func() {
		if answer.GetKnown() {
			fmt.Fprintf(c.Err, "fairway: run %d was submitted with this key before\n", answer.GetRun())
		}
		fmt.Fprintln(c.Out, answer.GetRun())
	})
}

// Submitted submits a workflow to the server that is meant.
func (c *Commands) Submitted(
	ctx context.Context, request *wire.SubmitWorkflowRequest,
) (answer *wire.SubmitWorkflowResponse, err error) {
	request.User, request.Group = thisUser(), c.Group
	err = c.AskServer(ctx, func(ctx context.Context, client wire.WorkflowClient) (err error) {
		console.WithKey(client, request)
		answer, err = client.SubmitWorkflow(ctx, request)
		return err
	})
	return answer, err
}

// AskServer asks a server that takes workflows: that of --server, or of this folder.
func (c *Commands) AskServer(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	if c.Service == "" && c.Dir == "" {
		folder, err := c.WorkflowFolder()
		if err != nil || !console.HasState(folder) {
			return console.Fail(console.ExitUsage,
				"name one with --server, or with $"+console.ServerVariable+"; `fairway serve` starts one",
				"it is not said which server is meant")
		}
	}
	return c.AskRunning(ctx, do)
}

// RunNumber reads the number of a run.
func RunNumber(text string) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil || number == 0 {
		return 0, console.Fail(console.ExitUsage, "`fairway runs` lists them", "%q is no number of a run", text)
	}
	return uint32(number), nil
}

// WatchRun watches a run; Ctrl-C ends the watching only.
func (c *Commands) WatchRun(ctx context.Context, number uint32) error {
	c.Number = number
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	interrupted := console.Signalled(func(os.Signal) { cancel() })
	defer interrupted()
	var report *wire.ProgressReport
	err := c.AskRunning(watching, func(ctx context.Context, client wire.WorkflowClient) (err error) {
		report, err = c.Watch(ctx, client)
		return err
	})
	switch {
	case watching.Err() != nil:
		return console.Quietly(console.ExitInterrupted)
	case err != nil:
		return err
	case !report.GetEnded():
		return errors.New("the server ended before the run had; watch it again when the server is back")
	}
	return c.ConcludeAsking(report, func(do console.Asking) error { return c.Ask(ctx, do) })
}

var runStates = []string{"underway", "stopped", "failed", "succeeded"}

// RunsCommand is `fairway runs`.
func (c *Commands) RunsCommand() *cobra.Command {
	request := new(wire.ListRunsRequest)
	command := &cobra.Command{
		Use:   "runs [WORD...]",
		Short: "List the runs of a server",
		Long: `List the runs of a server that takes workflows (` + "`fairway serve`" + `), the newest first.
With words, only those that have each of them in the name of the workflow or its file,
the user, the group, or NAME=VALUE of a parameter.`,
		Example: "  fairway runs --server /data/fairway\n  fairway runs --state failed --json\n  fairway runs ada pairs=500",
		RunE: func(command *cobra.Command, words []string) error {
			request.Text = strings.Join(words, " ")
			for _, state := range request.States {
				if !slices.Contains(runStates, state) {
					return console.Fail(console.ExitUsage, "states are "+strings.Join(runStates, ", "), "there is no state %q", state)
				}
			}
			return c.AskServer(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.ListRuns(ctx, request)
				if err != nil {
					return err
				}
				return c.Answer(answer, func() { c.printRuns(answer) })
			})
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&request.States, "state", nil, "only runs in this state (may be repeated)")
	flags.Int32Var(&request.Limit, "limit", wire.DefaultRunsListed, "list at most this many runs")
	flags.Uint32Var(&request.Before, "before", 0, "only runs with a number below this one, to page through many runs")
	_ = command.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(runStates, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (c *Commands) printRuns(answer *wire.ListRunsResponse) {
	if len(answer.GetRuns()) == 0 {
		fmt.Fprintln(c.Out, "no such runs")
		return
	}
	rows := [][]screen.Cell{screen.Head("RUN", "WORKFLOW", "STATE", "DONE", "FAILED", "SUBMITTED", "USER", "RESULTS")}
	for _, run := range answer.GetRuns() {
		colour := map[string]string{"succeeded": screen.Green, "failed": screen.Red, "stopped": screen.Yellow}[run.GetState()]
		rows = append(rows, []screen.Cell{
			{fmt.Sprint(run.GetRun()), ""}, {run.GetWorkflow(), ""}, {run.GetState(), colour},
			{fmt.Sprintf("%d/%d", run.GetDone(), run.GetJobs()), ""}, {fmt.Sprint(run.GetFailed()), ""},
			{run.GetSubmitted().AsTime().Local().Format("2006-01-02 15:04:05"), ""}, {account(run), ""},
			{screen.DisplayPath(run.GetResults()), screen.Dim},
		})
	}
	screen.PrintTable(c.Out, rows)
	if answer.GetMore() {
		last := answer.GetRuns()[len(answer.GetRuns())-1].GetRun()
		fmt.Fprintf(c.Err, "there are more; the next: --before %d; fewer: words, --state\n", last)
	}
}

func account(run *wire.RunSummary) string {
	if run.GetGroup() == "" {
		return run.GetUser()
	}
	return run.GetGroup() + "/" + run.GetUser()
}

// RemoveCommand is `fairway remove`.
func (c *Commands) RemoveCommand() *cobra.Command {
	var dry bool
	command := &cobra.Command{
		Use:   "rm RUN...",
		Short: "Remove runs of a server that have ended",
		Long: `Remove runs that have ended from a server that takes workflows, with their records,
logs and results folders. Results at other places stay. What its jobs have stored is
kept while another run names it, and after that for as long as the retention says:
--dry-run lists it.`,
		Example: "  fairway rm 3 4 --server /data/fairway\n  fairway rm 3 --dry-run",
		Args:    console.Takes(1, math.MaxInt, "RUN"),
		RunE: func(command *cobra.Command, arguments []string) error {
			request := &wire.RemoveRunsRequest{DryRun: dry}
			for _, argument := range arguments {
				number, err := RunNumber(argument)
				if err != nil {
					return err
				}
				request.Runs = append(request.Runs, number)
			}
			return c.AskServer(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.RemoveRuns(ctx, request)
				if err != nil {
					return err
				}
				return c.Answer(answer, func() { c.printRemoved(answer, dry) })
			})
		},
	}
	command.Flags().BoolVar(&dry, "dry-run", false, "print what would be removed, and remove nothing")
	return command
}

func (c *Commands) printRemoved(answer *wire.RemoveRunsResponse, dry bool) {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	for _, run := range answer.GetRuns() {
		fmt.Fprintf(c.Out, "%s run %d: %s\n", verb, run.GetRun(), quantity.Bytes(run.GetBytes()))
		for _, path := range run.GetPaths() {
			fmt.Fprintf(c.Out, "  %s\n", screen.DisplayPath(path))
		}
		c.printRemovedResults(run, dry)
	}
}

func (c *Commands) printRemovedResults(run *wire.RemovedRun, dry bool) {
	goes, stays := "gone", "kept"
	if dry {
		goes, stays = "would go", "would be kept"
	}
	count := func(n, bytes int64, what string) {
		if n > 0 {
			fmt.Fprintf(c.Out, "  stored outputs of %s %s: %s\n", quantity.Count(n, "job"), what, quantity.Bytes(bytes))
		}
	}
	count(run.GetResultsGone(), run.GetResultBytesGone(), goes)
	count(run.GetResultsKept(), run.GetResultBytesKept(), stays)
	if !dry {
		return
	}
	for _, result := range run.GetResults() {
		fmt.Fprintf(c.Out, "    %s (%s): %s\n", screen.OneLine(result.GetJob()), quantity.Bytes(result.GetBytes()),
			fateOf(result))
		for _, lfn := range result.GetFiles() {
			fmt.Fprintf(c.Out, "      %s\n", screen.OneLine(lfn))
		}
	}
	if more := run.GetResultsGone() + run.GetResultsKept() - int64(len(run.GetResults())); more > 0 {
		fmt.Fprintf(c.Out, "    and of %s more\n", quantity.Count(more, "job"))
	}
}

func fateOf(result *wire.RunResult) string {
	switch {
	case len(result.GetNamedBy()) > 0:
		verb := " has it"
		if len(result.GetNamedBy()) > 1 {
			verb = " have it"
		}
		return "kept, since " + strings.Join(result.GetNamedBy(), ", ") + verb
	case result.GetUntil() == nil:
		return "would go"
	}
	until := result.GetUntil().AsTime().Local().Format("2006-01-02 15:04")
	if result.GetPromised() {
		return "kept until " + until + " by the retention of its group"
	}
	return "kept until " + until + ", if there is room"
}
