package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"fairway/internal/wire"
)

func parameters(settings []string) (map[string]string, error) {
	values := map[string]string{}
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || name == "" {
			return nil, fail(exitUsage, "write --set name=value", "--set %s names no value", setting)
		}
		if !utf8.ValidString(value) {
			return nil, fail(exitUsage, "", "--set %s: the value %q is not UTF-8", name, value)
		}
		values[name] = value
	}
	return values, nil
}

// asking asks a server, or the records of a run.
type asking func(context.Context, wire.WorkflowClient) error

// concludeAsking is conclude for a run that ask asks.
func (c *console) concludeAsking(report *wire.ProgressReport, ask func(asking) error) error {
	_ = c.answer(report, func() {
		printSummary(c.out, report)
		c.printAdvice(report, ask)
	})
	c.concluded = true
	if !report.Succeeded {
		return quietly(exitFailed)
	}
	return nil
}

// printAdvice tells after a run that did not succeed where to look.
func (c *console) printAdvice(report *wire.ProgressReport, ask func(asking) error) {
	goOn := "run it again to go on"
	if c.number != 0 && c.asksService() {
		goOn = fmt.Sprintf("`fairway retry --run %d` has it go on", c.number)
	}
	switch total := totalOf(report.Steps); {
	case report.Succeeded:
	case total.Failed > 0:
		_ = c.printFailures(ask) // the way to the logs is told in any case
		fmt.Fprintln(c.err, "  see `fairway jobs --state failed`, `fairway logs JOB`, `fairway explain JOB`; "+goOn)
	case total.Cancelled > 0:
		fmt.Fprintln(c.err, "  see `fairway jobs --state cancelled`")
	default:
		fmt.Fprintln(c.err, "  "+goOn)
	}
}
