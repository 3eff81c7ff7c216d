package cli

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

	"fairway/internal/flow"
	"fairway/internal/quantity"
	"fairway/internal/wfformat"
	"fairway/internal/wire"
)

// submitOptions are the flags of submit.
type submitOptions struct {
	set       []string
	until     string
	keepGoing bool
	results   string
	key       string
	upload    []string
	watch     bool
	scales    flow.Scales

	waitAnyway bool
	noReuse    bool
	priority   int32
}

func (c *console) submitCommand() *cobra.Command {
	o := new(submitOptions)
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
		Args:              maybeFile,
		ValidArgsFunction: workflowFiles,
		RunE: func(command *cobra.Command, arguments []string) error {
			file, dir, err := c.submittedFile(arguments)
			if err != nil {
				return err
			}
			request, err := submission(file, dir, o)
			if err != nil {
				return err
			}
			return c.submitWorkflow(command.Context(), request, o.watch)
		},
	}
	command.Flags().BoolVar(&o.watch, "watch", false, "watch the run until it has ended")
	c.groupFlag(command)
	c.submissionFlags(command, o)
	return command
}

// submissionFlags are those of what is submitted.
func (c *console) submissionFlags(command *cobra.Command, o *submitOptions) {
	flags := command.Flags()
	flags.StringArrayVar(&o.set, "set", nil, "give a parameter a value: name=value (may be repeated)")
	flags.StringVar(&o.until, "until", "", "run only up to this step, or up to the step that writes this file")
	flags.BoolVar(&o.keepGoing, "keep-going", false, "after a failure, go on with the jobs that do not depend on it")
	flags.StringVar(&o.results, "results", "", "put the results into this `place` instead of results/ of the server: a "+
		"folder, or a URL (s3://bucket/folder, davs://, root://)")
	flags.Float64Var(&o.scales.TimeScale, "time-scale", 1, "multiply the run times of a trace by this")
	flags.Float64Var(&o.scales.SizeScale, "size-scale", 1, "multiply the file sizes of a trace by this")
	flags.BoolVar(&o.waitAnyway, "wait-anyway", false, "wait for pilots even if no pilot of the server could ever run a "+
		"step, as it seems now")
	flags.BoolVar(&o.noReuse, "no-reuse", false, noReuseHelp)
	flags.Int32Var(&o.priority, "priority", 0, priorityHelp)
	flags.StringVar(&o.key, "key", "",
		"a `name` for this submission: a repeated one answers with the same run")
	flags.StringArrayVar(&o.upload, "upload", nil, "send this file or folder along, as an input (may be repeated)")
	_ = command.RegisterFlagCompletionFunc("set", c.completeParameters)
}

const priorityHelp = "a number that is added to the priority of each step: of your ready jobs, higher ones go first"

const noReuseHelp = "take no result of another run, also where command and inputs are the same"

// submittedFile finds the workflow file that is meant, and the folder of its inputs.
func (c *console) submittedFile(arguments []string) (file, dir string, err error) {
	file = filepath.Join(c.dir, defaultFile)
	if len(arguments) > 0 {
		file = arguments[0]
	}
	dir, err = filepath.Abs(filepath.Dir(file))
	return file, dir, err
}

// submission is the request that submits a workflow, which is checked as far as it can be here.
func submission(file, dir string, o *submitOptions) (*wire.SubmitWorkflowRequest, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fail(exitBadFile, "name the workflow file: fairway submit FILE", "cannot read the workflow: %w", err)
	}
	values, err := parameters(o.set)
	if err != nil {
		return nil, err
	}
	workflow, err := wfformat.ParseEither(file, text, o.scales)
	if err != nil {
		return nil, &failure{code: exitBadFile, err: err}
	}
	if workflow, err = workflow.With(values); err != nil {
		return nil, &failure{code: exitBadFile, err: err}
	}
	if o.until != "" {
		if _, err = workflow.Until(o.until); err != nil {
			return nil, &failure{code: exitNotFound, err: err}
		}
	}
	if _, err := workflow.Raised(int(o.priority)); err != nil {
		return nil, &failure{code: exitUsage, err: err}
	}
	request := &wire.SubmitWorkflowRequest{
		Priority: o.priority,
		Workflow: text, File: filepath.Base(file), Folder: dir, Parameters: values, Until: o.until, KeepGoing: o.keepGoing,
		Results: o.results, Key: o.key, WaitAnyway: o.waitAnyway, NoReuse: o.noReuse,
	}
	if wfformat.Is(text) {
		request.TimeScale, request.SizeScale = &o.scales.TimeScale, &o.scales.SizeScale
	}
	if o.results != "" && !strings.Contains(o.results, "://") {
		if request.Results, err = filepath.Abs(o.results); err != nil {
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
				return fail(exitUsage, "name a file or folder there", "--upload %s: it is not in %s", name, folderText(dir))
			}
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := os.Stat(at)
			if err != nil {
				return err
			}
			if size += info.Size(); size > wire.MaxUploads {
				return fail(exitUsage, "put the files where the server sees them, or name URLs",
					"the uploads have more than %s", quantity.Bytes(wire.MaxUploads))
			}
			relative, err := filepath.Rel(dir, at)
			if err == nil && !filepath.IsLocal(relative) {
				err = fail(exitUsage, "name files below that folder",
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

// submitWorkflow submits, and watches the run if that is wanted.
func (c *console) submitWorkflow(ctx context.Context, request *wire.SubmitWorkflowRequest, watch bool) error {
	answer, err := c.submitted(ctx, request)
	if err != nil {
		return err
	}
	if watch {
		c.announce(fmt.Sprintf("fairway: run %d", answer.GetRun()))
		return c.watchRun(ctx, answer.GetRun())
	}
	return c.answer(answer, func() {
		if answer.GetKnown() {
			fmt.Fprintf(c.err, "fairway: run %d was submitted with this key before\n", answer.GetRun())
		}
		fmt.Fprintln(c.out, answer.GetRun())
	})
}

// submitted submits a workflow to the server that is meant.
func (c *console) submitted(
	ctx context.Context, request *wire.SubmitWorkflowRequest,
) (answer *wire.SubmitWorkflowResponse, err error) {
	request.User, request.Group = thisUser(), c.group
	err = c.askServer(ctx, func(ctx context.Context, client wire.WorkflowClient) (err error) {
		withKey(client, request)
		answer, err = client.SubmitWorkflow(ctx, request)
		return err
	})
	return answer, err
}

// askServer asks a server that takes workflows: that of --server, or of this folder.
func (c *console) askServer(ctx context.Context, do func(context.Context, wire.WorkflowClient) error) error {
	if c.service == "" && c.dir == "" {
		folder, err := c.workflowFolder()
		if err != nil || !hasState(folder) {
			return fail(exitUsage, "name one with --server, or with $"+serverVariable+"; `fairway serve` starts one",
				"it is not said which server is meant")
		}
	}
	return c.askRunning(ctx, do)
}

func (c *console) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Watch a run until it has ended",
		Long: `Watch the run of this folder, or a run of a server that takes workflows, until it has
ended. Ctrl-C ends the watching only. The exit code is that of the run.`,
		Example: "  fairway watch\n  fairway watch 7 --server /data/fairway",
		Args:    c.numbered,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.watchRun(command.Context(), c.number)
		},
	}
}

func runNumber(text string) (uint32, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil || number == 0 {
		return 0, fail(exitUsage, "`fairway runs` lists them", "%q is no number of a run", text)
	}
	return uint32(number), nil
}

// watchRun watches a run; Ctrl-C ends the watching only.
func (c *console) watchRun(ctx context.Context, number uint32) error {
	c.number = number
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	interrupted := signalled(func(os.Signal) { cancel() })
	defer interrupted()
	var report *wire.ProgressReport
	err := c.askRunning(watching, func(ctx context.Context, client wire.WorkflowClient) (err error) {
		report, err = c.watch(ctx, client)
		return err
	})
	switch {
	case watching.Err() != nil:
		return quietly(exitInterrupted)
	case err != nil:
		return err
	case !report.GetEnded():
		return errors.New("the server ended before the run had; watch it again when the server is back")
	}
	return c.concludeAsking(report, func(do asking) error { return c.ask(ctx, do) })
}

// runStates are those of runs.
var runStates = []string{"underway", "stopped", "failed", "succeeded"}

func (c *console) runsCommand() *cobra.Command {
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
					return fail(exitUsage, "states are "+strings.Join(runStates, ", "), "there is no state %q", state)
				}
			}
			return c.askServer(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.ListRuns(ctx, request)
				if err != nil {
					return err
				}
				return c.answer(answer, func() { c.printRuns(answer) })
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

func (c *console) printRuns(answer *wire.ListRunsResponse) {
	if len(answer.GetRuns()) == 0 {
		fmt.Fprintln(c.out, "no such runs")
		return
	}
	rows := [][]cell{{
		{"RUN", dim}, {"WORKFLOW", dim}, {"STATE", dim}, {"DONE", dim}, {"FAILED", dim}, {"SUBMITTED", dim}, {"USER", dim},
		{"RESULTS", dim},
	}}
	for _, run := range answer.GetRuns() {
		colour := map[string]string{"succeeded": green, "failed": red, "stopped": yellow}[run.GetState()]
		rows = append(rows, []cell{
			{fmt.Sprint(run.GetRun()), ""}, {run.GetWorkflow(), ""}, {run.GetState(), colour},
			{fmt.Sprintf("%d/%d", run.GetDone(), run.GetJobs()), ""}, {fmt.Sprint(run.GetFailed()), ""},
			{run.GetSubmitted().AsTime().Local().Format("2006-01-02 15:04:05"), ""}, {account(run), ""},
			{displayPath(run.GetResults()), dim},
		})
	}
	printTable(c.out, rows)
	if answer.GetMore() {
		last := answer.GetRuns()[len(answer.GetRuns())-1].GetRun()
		fmt.Fprintf(c.err, "there are more; the next: --before %d; fewer: words, --state\n", last)
	}
}

// account is who has submitted a run, and for which group.
func account(run *wire.RunSummary) string {
	if run.GetGroup() == "" {
		return run.GetUser()
	}
	return run.GetGroup() + "/" + run.GetUser()
}

func (c *console) removeCommand() *cobra.Command {
	var dry bool
	command := &cobra.Command{
		Use:   "rm RUN...",
		Short: "Remove runs of a server that have ended",
		Long: `Remove runs that have ended from a server that takes workflows, with their records,
logs and results folders. Results at other places stay. What its jobs have stored is
kept while another run names it, and after that for as long as the retention says:
--dry-run lists it.`,
		Example: "  fairway rm 3 4 --server /data/fairway\n  fairway rm 3 --dry-run",
		Args:    takes(1, math.MaxInt, "RUN"),
		RunE: func(command *cobra.Command, arguments []string) error {
			request := &wire.RemoveRunsRequest{DryRun: dry}
			for _, argument := range arguments {
				number, err := runNumber(argument)
				if err != nil {
					return err
				}
				request.Runs = append(request.Runs, number)
			}
			return c.askServer(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.RemoveRuns(ctx, request)
				if err != nil {
					return err
				}
				return c.answer(answer, func() { c.printRemoved(answer, dry) })
			})
		},
	}
	command.Flags().BoolVar(&dry, "dry-run", false, "print what would be removed, and remove nothing")
	return command
}

func (c *console) printRemoved(answer *wire.RemoveRunsResponse, dry bool) {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	for _, run := range answer.GetRuns() {
		fmt.Fprintf(c.out, "%s run %d: %s\n", verb, run.GetRun(), quantity.Bytes(run.GetBytes()))
		for _, path := range run.GetPaths() {
			fmt.Fprintf(c.out, "  %s\n", displayPath(path))
		}
		c.printRemovedResults(run, dry)
	}
}

// printRemovedResults tells what becomes of the stored outputs of a run: how much goes and stays, and
// before a removal of each.
func (c *console) printRemovedResults(run *wire.RemovedRun, dry bool) {
	goes, stays := "gone", "kept"
	if dry {
		goes, stays = "would go", "would be kept"
	}
	count := func(n, bytes int64, what string) {
		if n > 0 {
			fmt.Fprintf(c.out, "  stored outputs of %s %s: %s\n", quantity.Count(n, "job"), what, quantity.Bytes(bytes))
		}
	}
	count(run.GetResultsGone(), run.GetResultBytesGone(), goes)
	count(run.GetResultsKept(), run.GetResultBytesKept(), stays)
	if !dry {
		return
	}
	for _, result := range run.GetResults() {
		fmt.Fprintf(c.out, "    %s (%s): %s\n", oneLine(result.GetJob()), quantity.Bytes(result.GetBytes()), fateOf(result))
		for _, lfn := range result.GetFiles() {
			fmt.Fprintf(c.out, "      %s\n", oneLine(lfn))
		}
	}
	if more := run.GetResultsGone() + run.GetResultsKept() - int64(len(run.GetResults())); more > 0 {
		fmt.Fprintf(c.out, "    and of %s more\n", quantity.Count(more, "job"))
	}
}

// fateOf tells what keeps a result without the run.
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
