package cli

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"fairway/internal/wire"
)

func (c *console) logsCommand() *cobra.Command {
	request := &wire.LogsRequest{}
	command := &cobra.Command{
		Use:   "logs JOB",
		Short: "Print what a job printed",
		Long: `Print the standard output and the standard error of an attempt of a job, each on
its own stream; of the last attempt, or of the one named. With -f, go on until
the attempt ends.`,
		Example:           "  fairway logs align/p3\n  fairway logs -f align/p3\n  fairway logs merge/1 --tail 2000 --json",
		Args:              oneJob,
		ValidArgsFunction: c.completeJob,
		RunE: func(command *cobra.Command, arguments []string) error {
			if request.TailBytes < 0 {
				return fail(exitUsage, "", "--tail is a number of bytes, not %d", request.TailBytes)
			}
			request.Job = arguments[0]
			return c.look(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				return c.printLogs(ctx, client, request)
			})
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&request.Follow, "follow", "f", false, "go on until the attempt ends")
	flags.Uint64Var(&request.Attempt, "attempt", 0, "the number of an attempt (see show --json); 0: the last")
	flags.Int64Var(&request.TailBytes, "tail", 0, "only so many bytes from the end; 0: all")
	return command
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
