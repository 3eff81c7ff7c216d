package look

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// ExplainCommand is `fairway explain`.
func (c *Commands) ExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain JOB|STEP",
		Short: "Say why a job is not running",
		Long: `Say why a job is not running: which file it waits for, and which job comes before
it; what no pilot has left (a resource, a program, time); or which failure blocks
it. For a step, count its jobs by state, and explain the first of each.`,
		Example:           "  fairway explain merge/1\n  fairway explain align",
		Args:              console.OneJob,
		ValidArgsFunction: c.CompleteJob,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.Ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.Explain(ctx, &wire.ExplainRequest{Job: arguments[0]})
				if connect.CodeOf(err) == connect.CodeNotFound {
					return c.explainStep(ctx, client, arguments[0], err)
				}
				if err != nil {
					return err
				}
				return c.Answer(answer, func() { c.printExplanation(answer) })
			})
		},
	}
}

// ExplainedStep is what --json prints of a step.
type ExplainedStep struct {
	Step    string           `json:"step"`
	ByState map[string]int64 `json:"by_state"`
	First   []any            `json:"first"` // explained, of each state
}

// explainStep explains the first job of each state that jobs of a step are in, but for those that
// are done where others are not. unknown is what to say if the name is no step's either.
func (c *Commands) explainStep(ctx context.Context, client wire.WorkflowClient, step string, unknown error) error {
	list, err := client.ListJobs(ctx, &wire.ListJobsRequest{Steps: []string{step}, Limit: 1})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return unknown
	}
	if err != nil {
		return err
	}
	if list.GetTotal() == 0 {
		return console.Fail(console.ExitNotFound,
			"`fairway jobs` lists the jobs; those of a step are made when the names of their files are known",
			"there is no job %q, and no job of a step of this name yet", step)
	}
	states := slices.Sorted(maps.Keys(list.GetByState()))
	states = slices.DeleteFunc(states, func(state string) bool {
		return list.ByState[state] == 0 || state == taskqueue.Done.String() && list.ByState[state] < list.GetTotal()
	})
	var answers []*wire.ExplainResponse
	for _, state := range states {
		first, err := client.ListJobs(ctx, &wire.ListJobsRequest{Steps: []string{step}, States: []string{state}, Limit: 1})
		if err != nil {
			return err
		}
		for _, job := range first.GetJobs() {
			answer, err := client.Explain(ctx, &wire.ExplainRequest{Job: job.GetName()})
			if err != nil {
				return err
			}
			answers = append(answers, answer)
		}
	}
	first := make([]any, len(answers))
	for i, answer := range answers {
		first[i] = console.Plain(answer.ProtoReflect())
	}
	return c.Answer(ExplainedStep{step, list.GetByState(), first}, func() {
		fmt.Fprintf(c.Out, "%s: %s\n", screen.OneLine(step), jobsByState(list))
		for _, answer := range answers {
			c.printExplanation(answer)
		}
	})
}

func jobsByState(list *wire.ListJobsResponse) string {
	text := quantity.Count(list.GetTotal(), "job")
	for _, state := range slices.Sorted(maps.Keys(list.GetByState())) {
		if n := list.ByState[state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return text
}

func (c *Commands) printExplanation(answer *wire.ExplainResponse) {
	s := screen.StyleOf(c.Out)
	summary := answer.Summary
	fmt.Fprintf(c.Out, "%s (job %d) %s %s\n", s.Paint(screen.Bold, screen.OneLine(summary.Name)), summary.Id,
		verbOf(summary.State),
		s.Paint(stateColour(summary.State), summary.State))
	for _, line := range answer.Lines {
		fmt.Fprintf(c.Out, "  %s\n", screen.Uncoloured(line))
	}
	c.printNotes(summary)
}

func verbOf(state string) string {
	switch state {
	case "failed":
		return "has"
	case "cancelled":
		return "was"
	default:
		return "is"
	}
}
