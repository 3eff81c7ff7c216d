package cli

import (
	"bytes"
	"context"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"fairway/internal/quantity"
	"fairway/internal/wire"
)

func (c *console) logsCommand() *cobra.Command {
	request := &wire.LogsRequest{}
	command := &cobra.Command{
		Use:   "logs JOB|STEP",
		Short: "Print what a job printed",
		Long: `Print the standard output and the standard error of an attempt of a job, each on
its own stream; of the last attempt, or of the one named. With -f, go on until
the attempt ends. Of an attempt that failed, the file that its step names under
log follows on standard error. Of a step, print those of all its jobs that have
started, each below a line with its name.`,
		Example:           "  fairway logs align/p3\n  fairway logs -f align/p3\n  fairway logs align --tail 500\n  fairway logs merge/1 --tail 2000 --json",
		Args:              oneJob,
		ValidArgsFunction: c.completeJob,
		RunE: func(command *cobra.Command, arguments []string) error {
			if request.TailBytes < 0 {
				return fail(exitUsage, "", "--tail is a number of bytes, not %d", request.TailBytes)
			}
			request.Job = arguments[0]
			return c.look(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				err := c.printLogs(ctx, client, request)
				if connect.CodeOf(err) == connect.CodeNotFound {
					return c.printLogsOfStep(ctx, client, request, err)
				}
				return explained(err) // not asked again: part of the logs was printed
			})
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&request.Follow, "follow", "f", false, "go on until the attempt ends")
	flags.Uint64Var(&request.Attempt, "attempt", 0, "the number of an attempt (see show --json); 0: the last")
	flags.Int64Var(&request.TailBytes, "tail", 0, "only so many bytes from the end; 0: all")
	return command
}

// printLogsOfStep is for a name that is no job's; unknown is what to say if it is
// no step's either.
func (c *console) printLogsOfStep(ctx context.Context, client wire.WorkflowClient, request *wire.LogsRequest, unknown error) error {
	jobs, err := jobsOfStep(ctx, client, request.Job)
	switch step := request.Job; {
	case err != nil:
		return err
	case len(jobs) == 0:
		return unknown
	case len(jobs) > 1 && (request.Follow || request.Attempt != 0 || c.json):
		return fail(exitUsage, fmt.Sprintf("name one of them, such as %s", jobs[0].Name),
			"%s is a step with %s; -f, --attempt and --json are for one job", step, quantity.Count(int64(len(jobs)), "job"))
	}
	for i, job := range jobs {
		if job.Attempts == 0 && !job.Reused {
			continue
		}
		if len(jobs) > 1 {
			if i > 0 {
				fmt.Fprintln(c.out)
			}
			fmt.Fprintf(c.out, "==> %s: %s <==\n", oneLine(job.Name), job.State)
		}
		request.Job = job.Name
		if err := c.printLogs(ctx, client, request); err != nil && connect.CodeOf(err) != connect.CodeNotFound {
			return err
		}
	}
	return nil
}

func jobsOfStep(ctx context.Context, client wire.WorkflowClient, step string) (jobs []*wire.JobSummary, err error) {
	request := &wire.ListJobsRequest{Steps: []string{step}}
	for {
		page, err := client.ListJobs(ctx, request)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, page.Jobs...)
		if !page.More || len(page.Jobs) == 0 {
			return jobs, nil
		}
		request.After = page.Jobs[len(page.Jobs)-1].Id
	}
}

type logsObject struct {
	Job       string `json:"job"`
	Attempt   uint64 `json:"attempt"` // as asked, 0 for the last
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Truncated bool   `json:"truncated"`
}

func (c *console) printLogs(ctx context.Context, client wire.WorkflowClient, request *wire.LogsRequest) error {
	stream, err := client.Logs(ctx, request)
	if err != nil {
		return err
	}
	defer stream.Close()
	out, failed, truncated := c.out, c.err, false
	var stdout, stderr bytes.Buffer
	if c.json {
		out, failed = &stdout, &stderr
	}
	for stream.Receive() {
		chunk := stream.Msg()
		truncated = truncated || chunk.Truncated
		to := out
		if chunk.StandardError {
			to = failed
		}
		if _, err := to.Write(chunk.Data); err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	if c.json {
		c.printJSON(logsObject{Job: request.Job, Attempt: request.Attempt, Stdout: stdout.String(), Stderr: stderr.String(), Truncated: truncated})
		return nil
	}
	if truncated {
		fmt.Fprintln(c.err, "fairway: the attempt printed more than is kept; the rest was dropped")
	}
	return nil
}
