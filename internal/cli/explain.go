package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"fairway/internal/wire"
)

func (c *console) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain JOB",
		Short: "Say why a job is not running",
		Long: `Say why a job is not running:
  - which file it waits for, and which job comes before it;
  - or what no pilot has left: a resource, a program, or time;
  - or which failure blocks it.`,
		Example:           "  fairway explain merge/1",
		Args:              oneJob,
		ValidArgsFunction: c.completeJob,
		RunE: func(command *cobra.Command, arguments []string) error {
			return c.ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				answer, err := client.Explain(ctx, &wire.ExplainRequest{Job: arguments[0]})
				if err != nil {
					return err
				}
				return c.answer(answer, func() { c.printExplanation(answer) })
			})
		},
	}
}

func (c *console) printExplanation(answer *wire.ExplainResponse) {
	s := styleOf(c.out)
	summary := answer.Summary
	fmt.Fprintf(c.out, "%s (job %d) %s %s\n", s.paint(bold, oneLine(summary.Name)), summary.Id, verbOf(summary.State), s.paint(stateColour(summary.State), summary.State))
	for _, line := range answer.Lines {
		fmt.Fprintf(c.out, "  %s\n", uncoloured(line))
	}
	c.printNotes(summary)
}

// verbOf makes a sentence of a state.
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
