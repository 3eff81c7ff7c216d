//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"fairway/internal/cli/call"
	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/process"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

func (c *commands) execCommand() *cobra.Command {
	l := &call.Call{Step: call.Exec}
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
	l := &call.Call{Step: call.Map}
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
	command.Flags().StringArrayVar(&l.Each, "each", nil, "pattern of the files, such as 'data/{x}.gz' (may be repeated)")
	return command
}

func (c *commands) submitting(l *call.Call, command *cobra.Command) *cobra.Command {
	o, printed := newRunOptions(), false
	command.Args = func(command *cobra.Command, words []string) error { return takesCommand(l, command, words) }
	command.RunE = func(command *cobra.Command, words []string) error {
		l.Words = words
		text, err := l.Workflow(printed)
		if err != nil {
			return err
		}
		if printed {
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
	flags.StringArrayVar(&l.Reads, "reads", nil, "a further `file` that the command reads (may be repeated)")
	flags.StringArrayVar(&l.Writes, "writes", nil, "a `file` that the command writes (may be repeated)")
	flags.StringArrayVar(&l.Needs, "needs", nil, "what it needs: cpus=2, memory=4GB, disk, time, or what a site names "+
		"(may be repeated)")
	flags.StringVar(&l.Checkpoint, "checkpoint", "", "a `folder` such as state/ in which the command saves its state: a "+
		"job that is ended before its time goes on from there")
	flags.IntVar(&l.Tasks, "tasks", 0, "so many tasks that begin together, each with what --needs says")
	flags.IntVar(&l.Nodes, "nodes", 0, "as --tasks, each on a node of its own")
	flags.BoolVar(&l.Once, "once", false, "with --tasks or --nodes: only the first runs the command, as for mpirun")
	flags.IntVar(&l.Attempts, "attempts", 1, "how often a job is tried in all")
	flags.Int32Var(&l.Priority, "priority", 0, "a number: of your ready jobs, higher ones go first")
	flags.BoolVar(&printed, "print", false, "print the workflow file that this stands for, and run nothing")
	c.GroupFlag(command)
	c.serverFlags(command, o)
	return command
}

// takesCommand refuses what stands before the --: it is no part of the command, but mostly file names
// that a shell has put in place of a pattern of --each without quotes.
func takesCommand(l *call.Call, command *cobra.Command, words []string) error {
	if n := command.ArgsLenAtDash(); n > 0 {
		return fmt.Errorf("%s takes no %q before the --; quote patterns, since the shell replaces * by names of files",
			command.Name(), words[0])
	}
	if l.Step == call.Map && len(l.Each) == 0 {
		return fmt.Errorf("%s needs --each: %s", command.Name(), command.UseLine())
	}
	return console.Takes(1, console.AnyNumber, "COMMAND")(command, words)
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
	l *call.Call, refs []*wire.SubmittedRef, report *wire.ProgressReport, ask func(console.Asking) error,
) error {
	return ask(func(ctx context.Context, client wire.WorkflowClient) error {
		known, ours := 0, make(map[uint32]bool, len(refs))
		for _, ref := range refs {
			if ours[ref.GetId()] = true; ref.GetKnown() && ref.GetState() == taskqueue.Done.String() {
				known++
			}
		}
		var left []*wire.JobSummary
		for job, err := range console.AllJobs(ctx, client, &wire.ListJobsRequest{Steps: []string{l.Step}, States: notDone}) {
			if err != nil {
				return err
			}
			if ours[job.GetId()] {
				left = append(left, job)
			}
		}
		cut := &cutNotice{Writer: c.Out}
		if len(l.Writes) == 0 && !c.JSON {
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
				text := fmt.Sprintf("%s: %d of %s done, %d of them known before", l.Step, len(refs)-len(left),
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
