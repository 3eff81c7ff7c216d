package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/flow"
	"fairway/internal/wire"
)

// What the shell shows is bounded, and so is how long a person waits for it.
const (
	completionLimit = 500
	completionTime  = 2 * time.Second
)

func workflowFiles(_ *cobra.Command, arguments []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeJob is for commands that take one job.
func (c *console) completeJob(
	command *cobra.Command, arguments []string, begun string,
) ([]string, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeJobs(command, arguments, begun)
}

func (c *console) completeJobs(
	command *cobra.Command, _ []string, begun string,
) (words []string, _ cobra.ShellCompDirective) {
	return c.complete(command, func(ctx context.Context, client wire.WorkflowClient) error {
		for job, err := range allJobs(ctx, client, &wire.ListJobsRequest{}) {
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

func (c *console) completeSteps(
	command *cobra.Command, _ []string, _ string,
) (words []string, _ cobra.ShellCompDirective) {
	return c.complete(command, func(ctx context.Context, client wire.WorkflowClient) error {
		report, err := progressNow(ctx, client)
		for _, step := range report.GetSteps() {
			words = append(words, step.Step)
		}
		return err
	}, &words)
}

func (c *console) complete(
	command *cobra.Command, find func(context.Context, wire.WorkflowClient) error, words *[]string,
) ([]string, cobra.ShellCompDirective) {
	c.chooseMeant(command)
	c.meant = "" // nobody reads it
	ctx, cancel := context.WithTimeout(command.Context(), completionTime)
	defer cancel()
	if err := c.ask(ctx, find); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return *words, cobra.ShellCompDirectiveNoFileComp
}

// completeParameters offers the parameters of the workflow for --set.
func (c *console) completeParameters(
	_ *cobra.Command, arguments []string, _ string,
) (words []string, _ cobra.ShellCompDirective) {
	if workflow := c.workflowMeant(arguments); workflow != nil {
		for _, p := range workflow.Parameters {
			words = append(words, p.Name+"=")
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeInputs offers the inputs that can be closed.
func (c *console) completeInputs(
	_ *cobra.Command, arguments []string, _ string,
) (words []string, _ cobra.ShellCompDirective) {
	if workflow := c.workflowMeant(nil); workflow != nil && len(arguments) == 0 {
		for _, input := range workflow.Inputs {
			if input.IsOpen() {
				words = append(words, input.Name)
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func (c *console) workflowMeant(arguments []string) *flow.Workflow {
	file, _, err := c.fileAndFolder(arguments)
	if err != nil {
		return nil
	}
	workflow, _ := readWorkflow(file, nil, flow.Scales{})
	return workflow
}
