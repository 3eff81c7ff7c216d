package console

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/flow/workflow"
	"fairway/internal/wire"
)

// What the shell shows is bounded, and so is how long a person waits for it.
const (
	completionLimit = 500
	completionTime  = 2 * time.Second
)

// WorkflowFiles completes the name of a workflow file.
func WorkflowFiles(_ *cobra.Command, arguments []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// CompleteJob is for commands that take one job.
func (c *Console) CompleteJob(
	command *cobra.Command, arguments []string, begun string,
) ([]string, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.CompleteJobs(command, arguments, begun)
}

// CompleteJobs completes the names of jobs.
func (c *Console) CompleteJobs(
	command *cobra.Command, _ []string, begun string,
) (words []string, _ cobra.ShellCompDirective) {
	return c.complete(command, func(ctx context.Context, client wire.WorkflowClient) error {
		for job, err := range AllJobs(ctx, client, &wire.ListJobsRequest{}) {
			if err != nil || len(words) == completionLimit {
				return err
			}
			if strings.HasPrefix(job.Name, begun) {
				words = append(words, job.Name+"\t"+job.State)
			}
		}
		return nil
	}, &words)
}

// CompleteSteps completes the names of steps.
func (c *Console) CompleteSteps(
	command *cobra.Command, _ []string, _ string,
) (words []string, _ cobra.ShellCompDirective) {
	return c.complete(command, func(ctx context.Context, client wire.WorkflowClient) error {
		report, err := ProgressNow(ctx, client)
		for _, step := range report.GetSteps() {
			words = append(words, step.Step)
		}
		return err
	}, &words)
}

func (c *Console) complete(
	command *cobra.Command, find func(context.Context, wire.WorkflowClient) error, words *[]string,
) ([]string, cobra.ShellCompDirective) {
	c.ChooseMeant(command)
	c.meant = "" // nobody reads it
	ctx, cancel := context.WithTimeout(command.Context(), completionTime)
	defer cancel()
	if err := c.Ask(ctx, find); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return *words, cobra.ShellCompDirectiveNoFileComp
}

// CompleteParameters offers the parameters of the workflow for --set.
func (c *Console) CompleteParameters(
	_ *cobra.Command, arguments []string, _ string,
) (words []string, _ cobra.ShellCompDirective) {
	if work := c.workflowMeant(arguments); work != nil {
		for _, p := range work.Parameters {
			words = append(words, p.Name+"=")
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompleteInputs offers the inputs that can be closed.
func (c *Console) CompleteInputs(
	_ *cobra.Command, arguments []string, _ string,
) (words []string, _ cobra.ShellCompDirective) {
	if work := c.workflowMeant(nil); work != nil && len(arguments) == 0 {
		for _, input := range work.Inputs {
			if input.IsOpen() {
				words = append(words, input.Name)
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func (c *Console) workflowMeant(arguments []string) *workflow.Workflow {
	file, _, err := c.FileAndFolder(arguments)
	if err != nil {
		return nil
	}
	work, _ := ReadWorkflow(file, nil, workflow.Scales{})
	return work
}
