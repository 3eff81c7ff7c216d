//go:build linux

package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fairway/internal/cli/call"
	"fairway/internal/cli/console"
	"fairway/internal/flow/workflow"
	"fairway/internal/wire"
)

// refuseHere refuses flags that say how a run of this machine goes, where a server takes it.
func refuseHere(command *cobra.Command) (err error) {
	here := &cobra.Command{}
	commandsOf(new(console.Console)).serverFlags(here, newRunOptions())
	command.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "results" && f.Name != "wait-anyway" && (f.Name == "detach" || here.Flags().Lookup(f.Name) != nil) {
			err = console.Fail(console.ExitUsage, "leave it out: the server has pilots, and goes on by itself",
				"--%s is not for a run at a server", f.Name)
		}
	})
	return err
}

// openAtServer opens a run at the server that --server names, and returns its number.
func (c *commands) openAtServer(ctx context.Context, o *runOptions) (*wire.SubmitWorkflowResponse, error) {
	return c.Submitted(ctx, &wire.SubmitWorkflowRequest{Workflow: o.text, File: o.file, Results: o.config.Results})
}

// submitAtServer adds the jobs to the run that --run names, and waits for them. Without one it
// opens a run for them and closes it again.
func (c *commands) submitAtServer(ctx context.Context, o *runOptions, l *call.Call, work *workflow.Workflow) error {
	jobs, err := l.Jobs(ctx, o.config.Folder, work)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		for _, in := range job.GetReads() {
			if in.File != "" && !workflow.IsURL(in.File) && !filepath.IsAbs(in.File) {
				in.File = filepath.Join(o.config.Folder, in.File)
			}
		}
	}
	ours := c.Number == 0
	if ours {
		opened, err := c.openAtServer(ctx, o)
		if err != nil {
			return err
		}
		c.Number = opened.GetRun()
		c.Announce(fmt.Sprintf("fairway: run %d", c.Number))
	}
	var refs []*wire.SubmittedRef
	err = c.AskServer(ctx, func(ctx context.Context, client wire.WorkflowClient) (err error) {
		refs, err = console.AddJobs(ctx, client, jobs, o.config.WaitAnyway)
		return err
	})
	if ours { // also where the jobs are refused: nobody else would close it
		closed := c.AskServer(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
			_, err := client.CloseInput(ctx, &wire.CloseInputRequest{})
			return err
		})
		if err == nil {
			err = closed
		}
	}
	if err != nil {
		return err
	}
	if err := c.AskServer(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		if ours {
			return awaitEnd(ctx, client)
		}
		return awaitJobs(ctx, client, refs)
	}); err != nil {
		return err
	}
	return c.concludeJobs(l, refs, nil, func(do console.Asking) error { return c.Ask(ctx, do) })
}

func awaitEnd(ctx context.Context, client wire.WorkflowClient) error {
	stream, err := client.Progress(ctx, &wire.ProgressRequest{Follow: true})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	for stream.Receive() {
		if stream.Msg().GetEnded() {
			return nil
		}
	}
	return stream.Err()
}
