package console

import (
	"context"
	"fmt"
	"strings"

	"fairway/internal/cli/screen"
	"fairway/internal/wire"
)

const (
	failuresShown = 3    // jobs of which the end of a run shows what they said
	lastLines     = 8    // of each
	lastBytes     = 2000 // of each
)

// printFailures shows the end of what failed jobs wrote to standard error, where
// that is more than the one line that their error has.
func (c *Console) printFailures(ask func(Asking) error) error {
	return ask(func(ctx context.Context, client wire.WorkflowClient) error {
		failed, err := client.ListJobs(ctx, &wire.ListJobsRequest{States: []string{"failed"}, Limit: failuresShown})
		if err != nil {
			return err
		}
		for _, job := range failed.Jobs {
			lines, err := lastSaid(ctx, client, job)
			if err != nil || len(lines) < 2 {
				continue // the log is gone, or the error has it all
			}
			fmt.Fprintf(c.Err, "  %s said at its end:\n", screen.OneLine(job.Name))
			for _, line := range lines {
				fmt.Fprintf(c.Err, "    %s\n", line)
			}
		}
		return nil
	})
}

// lastSaid returns the last lines that a job wrote to standard error.
func lastSaid(ctx context.Context, client wire.WorkflowClient, job *wire.JobSummary) ([]string, error) {
	stream, err := client.Logs(ctx, &wire.LogsRequest{Job: job.Name, TailBytes: lastBytes})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var said strings.Builder
	for stream.Receive() {
		if chunk := stream.Msg(); chunk.StandardError {
			said.Write(chunk.Data)
		}
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	return lines[max(0, len(lines)-lastLines):], stream.Err()
}
