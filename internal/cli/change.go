package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"fairway/internal/wire"
)

func (c *console) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel JOB...",
		Short: "Cancel jobs",
		Long: `Cancel jobs. A running attempt is ended with all its processes; jobs that wait
for the outputs are blocked until the job is retried or they are cancelled too.`,
		Example:           "  fairway cancel align/p3 17",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				changed, err := client.Cancel(ctx, &wire.CancelRequest{Jobs: arguments})
				return c.printChanged(changed, err)
			})
		},
	}
}

func (c *console) retryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retry [JOB...]",
		Short: "Let failed or cancelled jobs run again",
		Long: `Let failed or cancelled jobs run again, with fresh retries; without names, all
that failed. It needs a run that is under way; a new run retries by itself what
failed.`,
		Example:           "  fairway retry\n  fairway retry align/p3",
		ValidArgsFunction: c.completeJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				changed, err := client.Retry(ctx, &wire.RetryRequest{Jobs: arguments})
				return c.printChanged(changed, err)
			})
		},
	}
}

// printChanged tells how the jobs stand now; one that has ended before cannot
// be cancelled.
func (c *console) printChanged(changed *wire.ChangedJobs, err error) error {
	if err != nil {
		return err
	}
	if c.json {
		c.printJSON(changed)
		return nil
	}
	for _, job := range changed.Jobs {
		fmt.Fprintf(c.out, "%s: %s\n", job.Name, job.State)
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
		Example: "  fairway close runs",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			request := &wire.CloseInputRequest{}
			if len(arguments) > 0 {
				request.Input = arguments[0]
			}
			return c.askRunning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.CloseInput(ctx, request)
				if err != nil {
					return err
				}
				if c.json {
					c.printJSON(answer)
				}
				return nil
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
attempts, or at once. The next run goes on from there.`,
		Example: "  fairway stop\n  fairway stop --now",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.askRunning(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.Stop(ctx, &wire.StopRequest{Drain: !now})
				if err != nil {
					return err
				}
				if c.json {
					c.printJSON(answer)
				}
				return nil
			})
		},
	}
	command.Flags().BoolVar(&now, "now", false, "end the running attempts too; they run again next time")
	return command
}
