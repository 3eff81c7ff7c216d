package look

import (
	"bytes"
	"context"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// LogsCommand is `fairway logs`.
func (c *Commands) LogsCommand() *cobra.Command {
	request, ofPilot := &wire.LogsRequest{}, ""
	var task int32
	command := &cobra.Command{
		Use:   "logs JOB|STEP|--pilot NAME",
		Short: "Print what a job printed",
		Long: `Print what the last attempt of a job wrote to standard output and standard error,
each on its own stream. If it failed, the file that its step names under log:
follows on standard error. For a step, print the output of all its jobs that have
started, each below a line with its name. Of a job of several tasks, print what the
first one wrote, or the one that failed; --task prints another one.

With --pilot, print what a pilot or launch of this NAME has said itself: why it
left, or took no jobs. Of pilots that share no folder with the server, only the
end is kept.`,
		Example: "  fairway logs -f align/p3\n  fairway logs align --tail 500\n  fairway logs relax --task 2\n  fairway logs --pilot last",
		Args: func(command *cobra.Command, arguments []string) error {
			if ofPilot != "" {
				return console.NoArgument(command, arguments)
			}
			return console.OneJob(command, arguments)
		},
		ValidArgsFunction: c.CompleteJob,
		RunE: func(command *cobra.Command, arguments []string) error {
			if request.TailBytes < 0 {
				return console.Fail(console.ExitUsage, "", "--tail is a number of bytes, not %d", request.TailBytes)
			}
			if command.Flags().Changed("task") {
				request.Task = &task
			}
			if ofPilot != "" && (request.Follow || request.Attempt != 0 || request.Task != nil) {
				return console.Fail(console.ExitUsage, "leave them out",
					"--follow, --attempt and --task are for what a job printed, not for --pilot")
			}
			if ofPilot != "" {
				return c.printPilotLog(ofPilot, request.TailBytes)
			}
			request.Job = arguments[0]
			return c.AskAbout(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				err := c.PrintLogs(ctx, client, request)
				if connect.CodeOf(err) == connect.CodeNotFound {
					return c.printLogsOfStep(ctx, client, request, err)
				}
				if console.ServerGone(err) {
					return console.Explained(err) // not asked again: part of the logs was printed
				}
				return err
			})
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&request.Follow, "follow", "f", false, "go on until the attempt ends")
	flags.Uint64Var(&request.Attempt, "attempt", 0, "number of an attempt (show --json lists them); 0: the last one")
	flags.Int32Var(&task, "task", 0, "number of a task, from 0, of a job of several tasks")
	flags.StringVar(&ofPilot, "pilot", "", "print what this pilot said itself; last: the one that spoke last")
	flags.Int64Var(&request.TailBytes, "tail", 0, "print only this many bytes from the end; 0: all")
	return command
}

// printLogsOfStep is for a name that is no job's; unknown is what to say if it is
// no step's either.
func (c *Commands) printLogsOfStep(
	ctx context.Context, client wire.WorkflowClient, request *wire.LogsRequest, unknown error,
) error {
	var jobs []*wire.JobSummary
	for job, err := range console.AllJobs(ctx, client, &wire.ListJobsRequest{Steps: []string{request.Job}}) {
		if connect.CodeOf(err) == connect.CodeNotFound {
			return unknown
		}
		if err != nil {
			return err
		}
		jobs = append(jobs, job)
	}
	switch step := request.Job; {
	case len(jobs) == 0:
		return unknown
	case len(jobs) > 1 && (request.Follow || request.Attempt != 0 || c.JSON):
		return console.Fail(console.ExitUsage, fmt.Sprintf("name one of them, such as %s", jobs[0].Name),
			"%s is a step with %s; -f, --attempt and --json are for one job", step, quantity.Count(int64(len(jobs)), "job"))
	}
	for i, job := range jobs {
		if job.Attempts == 0 && !job.Reused {
			continue
		}
		if len(jobs) > 1 {
			if i > 0 {
				fmt.Fprintln(c.Out)
			}
			fmt.Fprintf(c.Out, "==> %s: %s <==\n", screen.OneLine(job.Name), job.State)
		}
		request.Job = job.Name
		if err := c.PrintLogs(ctx, client, request); err != nil &&
			(len(jobs) == 1 || connect.CodeOf(err) != connect.CodeNotFound) {
			return err
		}
	}
	return nil
}

// LogsObject is what --json prints of a log.
type LogsObject struct {
	Job     string `json:"job"`
	Attempt uint64 `json:"attempt"` // as asked, 0 for the last
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
}

// PrintLogs prints what a job has printed.
func (c *Commands) PrintLogs(ctx context.Context, client wire.WorkflowClient, request *wire.LogsRequest) error {
	stream, err := client.Logs(ctx, request)
	if err != nil {
		return err
	}
	defer stream.Close()
	out, failed := c.Out, c.Err
	var stdout, stderr bytes.Buffer
	if c.JSON {
		out, failed = &stdout, &stderr
	}
	for stream.Receive() {
		chunk := stream.Msg()
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
	object := LogsObject{Job: request.Job, Attempt: request.Attempt, Stdout: stdout.String(), Stderr: stderr.String()}
	return c.Answer(object, func() {})
}
