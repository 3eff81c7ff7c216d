package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/server/listen"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

func (c *commands) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel JOB...",
		Short: "Cancel jobs",
		Long: `Cancel jobs, and end their attempts with all processes. Jobs that wait for the
outputs are blocked until you retry the cancelled job, or cancel them too. If
nothing runs now, the next run cancels the jobs.`,
		Example:           "  fairway cancel align/p3 17",
		Args:              console.SomeJobs,
		ValidArgsFunction: c.CompleteJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.Ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				changed, err := client.Cancel(ctx, &wire.CancelRequest{Jobs: arguments})
				return c.printChanged(changed, err, func(job *wire.JobSummary) string {
					if job.State == "done" {
						return "done already, and not cancelled"
					}
					return job.State
				})
			})
		},
	}
}

func (c *commands) retryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retry [JOB...]",
		Short: "Run failed or cancelled jobs again",
		Long: `Run failed or cancelled jobs again, with fresh retries; without names all failed
ones. A job that is done runs again if a stored file that it wrote is lost. If
nothing runs now, the next run does it, which tries failed jobs in any case.`,
		Example:           "  fairway retry              # all failed jobs\n  fairway retry align/p3",
		ValidArgsFunction: c.CompleteJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.Ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				changed, err := client.Retry(ctx, &wire.RetryRequest{Jobs: arguments})
				return c.printChanged(changed, err, (*wire.JobSummary).GetState)
			})
		},
	}
}

func (c *commands) prioritizeCommand() *cobra.Command {
	request := new(wire.PrioritizeRequest)
	command := &cobra.Command{
		Use:   "prioritize [JOB...] --priority N",
		Short: "Change which of your waiting jobs go first",
		Long: `Give jobs that wait another priority. Of your ready jobs those of a higher one go
first, and a job lends its priority to those that it waits for. What runs goes on.

Without names, N is added to the priority that each job of the run was submitted
with, also of jobs to come; 0 takes that back. Jobs that were given a priority by
name keep it. If nothing runs now, the next run begins with it.`,
		Example: "  fairway prioritize align/p3 17 --priority 5\n  fairway prioritize --run 7 --priority=-1",
		Args: func(command *cobra.Command, _ []string) error {
			if !command.Flags().Changed("priority") {
				return console.Fail(console.ExitUsage, "higher jobs go first, and 0 is what jobs have that say nothing",
					"--priority is missing")
			}
			return nil
		},
		ValidArgsFunction: c.CompleteJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			request.Jobs = arguments
			return c.Ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				changed, err := client.Prioritize(ctx, request)
				return c.printChanged(changed, err, func(job *wire.JobSummary) string {
					if job.State == "done" {
						return "done already, and keeps its priority"
					}
					return fmt.Sprintf("%s, priority %d", job.State, request.Priority)
				})
			})
		},
	}
	command.Flags().Int32Var(&request.Priority, "priority", 0, "the priority, or what is added to that of all jobs")
	return command
}

func (c *commands) printChanged(changed *wire.ChangedJobs, err error, become func(*wire.JobSummary) string) error {
	if err != nil {
		return err
	}
	return c.Answer(changed, func() {
		for _, job := range changed.Jobs {
			fmt.Fprintf(c.Out, "%s: %s\n", screen.OneLine(job.Name), become(job))
		}
		for _, note := range changed.GetNotes() {
			fmt.Fprintln(c.Out, screen.OneLine(note))
		}
		if len(changed.Jobs)+len(changed.Notes) == 0 {
			fmt.Fprintln(c.Out, "no job had to be changed")
		}
	})
}

func (c *commands) closeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close [INPUT]",
		Short: "Say that a watched input gets no more files",
		Long: `Say that a watched input (watch: or url_list: in the workflow file) gets no more
files, so that the last merges are made and the run can end. Without a name, close
takes all watched inputs, and an open run (fairway open) takes no more jobs. It
needs a run that is under way.`,
		Example:           "  fairway close runs\n  fairway close",
		Args:              console.Takes(0, 1, "INPUT"),
		ValidArgsFunction: c.CompleteInputs,
		RunE: func(command *cobra.Command, arguments []string) error {
			request := &wire.CloseInputRequest{}
			text := "all inputs are closed: no more files and jobs come, and the run ends when its jobs have"
			if len(arguments) > 0 {
				request.Input = arguments[0]
				text = fmt.Sprintf("the input %s is closed", request.Input)
			}
			return c.AskRunning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.CloseInput(ctx, request)
				return c.printDone(answer, err, text)
			})
		},
	}
}

func (c *commands) stopCommand() *cobra.Command {
	var now, wait bool
	command := &cobra.Command{
		Use:   "stop",
		Short: "End the run that is under way here",
		Long: `End the run of this folder. Running attempts end first, unless you give --now,
which also ends pilots that still compute for a run that was killed. The next run
goes on from there.

Of a server that takes workflows, --run names the run to end. Without it the server
ends, if --server or --dir names it or it is in this folder, and its runs go on when it
is started again.

The command does not wait for the end, unless you give --wait.`,
		Example: "  fairway stop\n  fairway stop --now\n  fairway stop --server /data/fairway --run 7\n" +
			"  fairway stop --server /data/fairway --wait",
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			if wait && c.Number != 0 {
				return console.Fail(console.ExitUsage, fmt.Sprintf("stop it, and `fairway watch %d`", c.Number),
					"--wait is for a server, and for the run of a folder")
			}
			if c.Number == 0 && c.ByVariable(command) {
				return console.Fail(console.ExitUsage, `name it: fairway stop --server "$`+console.ServerVariable+
					"\"; or a run of it: --run NUMBER",
					"no run is in this folder, and the server of $%s ends only by its name", console.ServerVariable)
			}
			text := "the run ends when the running attempts have; `fairway stop --now` ends them too"
			if now {
				text = "the run is being ended"
			}
			if c.Number == 0 && c.AsksService() {
				text = "the server ends when the running attempts have; `fairway stop --now` ends them too; its runs go on when " +
					"it is started again"
				if now {
					text = "the server is being ended; its runs go on when it is started again"
				}
			}
			asked, follows := false, false
			err := c.AskRunning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				if connection, ok := client.(*listen.Connection); ok && connection.Standby && c.Number == 0 {
					text = "the server ends, and one that stands by goes on; the last one ends when the running attempts have"
					follows = true
					if asked { // who answers now is another one, which goes on
						return c.printDone(&wire.StopResponse{}, nil, "the server that was asked has gone, and another one is active")
					}
				}
				asked = true
				answer, err := client.Stop(ctx, &wire.StopRequest{Drain: !now})
				return c.printDone(answer, err, text)
			})
			switch {
			case errors.Is(err, console.ErrNothingRuns) && asked:
				return c.printDone(&wire.StopResponse{}, nil, "the run has ended")
			case errors.Is(err, console.ErrNothingRuns):
				return c.stopLeft(command.Context(), now)
			case err == nil && wait && !follows:
				return c.awaitGone(command.Context())
			}
			return err
		},
	}
	command.Flags().BoolVar(&now, "now", false, "end the running attempts too; the next run starts them again")
	command.Flags().BoolVar(&wait, "wait", false, "return when the server, or the run of this folder, has ended")
	return command
}

// gonePause is how often a command that waits for the end of a server asks whether it is there.
const gonePause = 100 * time.Millisecond

func (c *commands) awaitGone(ctx context.Context) error {
	for {
		err := c.AskRunning(ctx, func(context.Context, wire.WorkflowClient) error { return nil })
		if failed, ok := errors.AsType[*console.Failure](err); ok && failed.Code == console.ExitNoState {
			return nil
		}
		if err != nil {
			return err
		}
		if err := sched.Default().Sleep(ctx, gonePause); err != nil {
			return err
		}
	}
}

func (c *commands) printDone(answer proto.Message, err error, text string) error {
	if err != nil {
		return err
	}
	return c.Answer(answer, func() { fmt.Fprintln(c.Out, text) })
}
