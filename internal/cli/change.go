package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"fairway/internal/wire"
)

func (c *console) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel JOB...",
		Short: "Cancel jobs",
		Long: `Cancel jobs. A running attempt is ended with all its processes; jobs that wait
for the outputs are blocked until the job is retried or they are cancelled too.
Where nothing runs, the next run does it.`,
		Example:           "  fairway cancel align/p3 17",
		Args:              someJobs,
		ValidArgsFunction: c.completeJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
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

func (c *console) retryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retry [JOB...]",
		Short: "Let failed or cancelled jobs run again",
		Long: `Let failed or cancelled jobs run again, with fresh retries; without names, all
that failed. A job that is done is made to run again where a stored file that it
had written is lost. Where nothing runs, the next run does it; what failed it tries again
in any case.`,
		Example:           "  fairway retry\n  fairway retry align/p3",
		ValidArgsFunction: c.completeJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				changed, err := client.Retry(ctx, &wire.RetryRequest{Jobs: arguments})
				return c.printChanged(changed, err, (*wire.JobSummary).GetState)
			})
		},
	}
}

// printChanged tells how the jobs stand now.
func (c *console) printChanged(changed *wire.ChangedJobs, err error, become func(*wire.JobSummary) string) error {
	if err != nil {
		return err
	}
	if c.json {
		c.printJSON(changed)
		return nil
	}
	for _, job := range changed.Jobs {
		fmt.Fprintf(c.out, "%s: %s\n", job.Name, become(job))
	}
	if len(changed.Jobs) == 0 {
		fmt.Fprintln(c.out, "no job had to be changed")
	}
	return nil
}

func (c *console) closeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close [INPUT]",
		Short: "Say that a watched input gets no more files",
		Long: `Say that a watched input (watch: or url_list: in the workflow file) gets no more
files, so that merges at the end of the data can be made and the run can end.
Without a name: all watched inputs. It needs a run that is under way.`,
		Example:           "  fairway close runs",
		Args:              takes(0, 1, "INPUT"),
		ValidArgsFunction: c.completeInputs,
		RunE: func(command *cobra.Command, arguments []string) error {
			request := &wire.CloseInputRequest{}
			if len(arguments) > 0 {
				request.Input = arguments[0]
			}
			return c.askRunning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.CloseInput(ctx, request)
				return c.printDone(answer, err, closedText(request.Input))
			})
		},
	}
}

func (c *console) stopCommand() *cobra.Command {
	var now bool
	command := &cobra.Command{
		Use:   "stop",
		Short: "End the run that is under way here",
		Long: `End the run that is under way here, from another terminal: after the running
attempts, or at once. The next run goes on from there. With --now pilots are
ended too that still compute for a run that was cut short.`,
		Example: "  fairway stop\n  fairway stop --now",
		Args:    noArgument,
		RunE: func(command *cobra.Command, _ []string) error {
			err := c.askRunning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.Stop(ctx, &wire.StopRequest{Drain: !now})
				return c.printDone(answer, err, stoppedText(now))
			})
			if errors.Is(err, errNothingRuns) {
				return c.stopSurvivors(command.Context(), now)
			}
			return err
		},
	}
	command.Flags().BoolVar(&now, "now", false, "end the running attempts too; they run again next time")
	return command
}

// printDone tells that something was done of which the answer says nothing.
func (c *console) printDone(answer proto.Message, err error, text string) error {
	if err != nil {
		return err
	}
	if c.json {
		c.printJSON(answer)
	} else {
		fmt.Fprintln(c.out, text)
	}
	return nil
}

func closedText(input string) string {
	if input == "" {
		return "all inputs are closed"
	}
	return fmt.Sprintf("the input %s is closed", input)
}

func stoppedText(now bool) string {
	if now {
		return "the run is being ended"
	}
	return "the run ends when the running attempts have; `fairway stop --now` ends them too"
}
