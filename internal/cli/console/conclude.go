package console

import (
	"context"
	"fmt"

	"fairway/internal/cli/screen"
	"fairway/internal/wire"
)

// Asking asks a server, or the records of a run.
type Asking func(context.Context, wire.WorkflowClient) error

// ConcludeAsking is conclude for a run that ask asks.
func (c *Console) ConcludeAsking(report *wire.ProgressReport, ask func(Asking) error) error {
	_ = c.Answer(report, func() {
		screen.PrintSummary(c.Out, report)
		c.printAdvice(report, ask)
	})
	c.Concluded = true
	if !report.Succeeded {
		return Quietly(ExitFailed)
	}
	return nil
}

// printAdvice tells after a run that did not succeed where to look.
func (c *Console) printAdvice(report *wire.ProgressReport, ask func(Asking) error) {
	goOn := "run it again to go on"
	if c.Number != 0 && c.AsksService() {
		goOn = fmt.Sprintf("`fairway retry --run %d` has it go on", c.Number)
	}
	switch total := screen.TotalOf(report.Steps); {
	case report.Succeeded:
	case total.Failed > 0:
		_ = c.printFailures(ask) // the way to the logs is told in any case
		fmt.Fprintln(c.Err, "  see `fairway jobs --state failed`, `fairway logs JOB`, `fairway explain JOB`; "+goOn)
	case total.Cancelled > 0:
		fmt.Fprintln(c.Err, "  see `fairway jobs --state cancelled`")
	default:
		fmt.Fprintln(c.Err, "  "+goOn)
	}
}
