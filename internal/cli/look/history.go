package look

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/cli/service"
	"fairway/internal/history"
	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// history gathers what is recorded of the attempts of a run. Jobs whose results came from an earlier
// run were not executed, and are left out.
func (c *Commands) history(ctx context.Context, client wire.WorkflowClient) (*history.Run, history.About, error) {
	executed := func(s *wire.JobSummary) bool { return s.GetAttempts() > 0 || s.GetState() == "failed" }
	return c.HistoryOf(ctx, client, executed,
		func(run *history.Run, detail *wire.JobDetail) { run.Jobs = append(run.Jobs, history.Of(detail)) })
}

// HistoryOf looks at the jobs of a run that are wanted, and has them taken into its history.
func (c *Commands) HistoryOf(
	ctx context.Context, client wire.WorkflowClient, wanted func(*wire.JobSummary) bool,
	take func(*history.Run, *wire.JobDetail),
) (*history.Run, history.About, error) {
	report, err := console.ProgressNow(ctx, client)
	if err != nil {
		return nil, history.About{}, err
	}
	run := &history.Run{Workflow: report.GetWorkflow(), Number: c.Number, State: runState(report)}
	about := history.About{Version: console.ProgramVersion(), Made: time.Now(), Results: report.GetSummary().GetResults()}
	for summary, err := range console.AllJobs(ctx, client, &wire.ListJobsRequest{Limit: exportPage}) {
		if err != nil {
			return nil, about, err
		}
		if !wanted(summary) {
			continue
		}
		detail, err := client.ShowJob(ctx, &wire.ShowJobRequest{Job: summary.GetName()})
		if err != nil {
			return nil, about, err
		}
		take(run, detail)
	}
	return run, about, nil
}

func runState(report *wire.ProgressReport) string {
	switch {
	case !report.GetEnded():
		return "It is under way"
	case report.GetSucceeded():
		return "It has succeeded"
	}
	return "It has not succeeded"
}

func (c *Commands) numbered(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 1 {
		return console.Fail(console.ExitUsage, "name one run", "it takes one run, not %d", len(arguments))
	}
	if len(arguments) == 1 {
		var err error
		c.Number, err = service.RunNumber(arguments[0])
		return err
	}
	return nil
}

// WhyCommand is `fairway why`.
func (c *Commands) WhyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why [RUN]",
		Short: "Tell what set the time of a run",
		Long: `Tell what set the time of a run: the critical path, from the job that ended last to
what it waited for, and how much of the time was computing, staging, waiting for a
slot, for the batch system, and failed attempts. It goes by the attempts that are
recorded, and foretells the time under other conditions, as what-if does, where few
enough jobs were executed. RUN is a number at a server that takes workflows.`,
		Example: "  fairway why\n  fairway why 7 --server /data/fairway",
		Args:    c.numbered,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.Ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				run, _, err := c.history(ctx, client)
				if err != nil {
					return err
				}
				why := run.Explain()
				if why == nil {
					return console.Fail(console.ExitNotFound, "a job that has ended is needed", "nothing was executed in this run")
				}
				foretold, err := foretoldOf(ctx, run)
				if err != nil {
					c.Announce(fmt.Sprintf("note: the time under other conditions cannot be told: %v", err))
				}
				answer := whyJSON(why)
				answer.WhatIf = foretold
				return c.Answer(answer, func() {
					c.printWhy(why)
					if foretold != nil {
						fmt.Fprintln(c.Out, "\nUnder other conditions:")
						c.printWhatIf(foretold)
					}
				})
			})
		},
	}
}

const pathShown = 30

func (c *Commands) printWhy(w *history.Why) {
	span := w.End.Sub(w.Begin)
	fmt.Fprintf(c.Out, "It took %s; its attempts together %s: %.1f computed side by side on average, %d at most.\n",
		quantity.Seconds(span.Seconds()), quantity.Seconds(w.Work.Seconds()), w.Slots, w.Most)
	rows := [][]screen.Cell{screen.Head("SPENT ON", "TIME", "SHARE")}
	share := func(d time.Duration) string { return fmt.Sprintf("%.0f %%", 100*d.Seconds()/max(span.Seconds(), 1e-9)) }
	for _, cause := range history.Causes {
		if t := w.Times[cause]; t > 0 {
			rows = append(rows, []screen.Cell{{string(cause), ""}, {quantity.Seconds(t.Seconds()), ""}, {share(t), ""}})
		}
	}
	screen.PrintTable(c.Out, rows)
	fmt.Fprintf(c.Out, "\nThe critical path has %s:\n", quantity.Count(int64(len(w.Path)), "job"))
	rows = [][]screen.Cell{screen.Head("JOB", "TIME", "SHARE", "OF WHICH")}
	for i, job := range w.Path {
		if i == pathShown {
			rows = append(rows, []screen.Cell{{fmt.Sprintf("and %d more", len(w.Path)-i), screen.Dim}})
			break
		}
		var all time.Duration
		causes := map[history.Cause]time.Duration{}
		for _, part := range w.Parts {
			if part.Job == job {
				all += part.To.Sub(part.From)
				causes[part.Cause] += part.To.Sub(part.From)
			}
		}
		var of []string
		for _, cause := range history.Causes {
			if t := causes[cause]; t > 0 {
				of = append(of, string(cause)+" "+quantity.Seconds(t.Seconds()))
			}
		}
		rows = append(rows, []screen.Cell{{screen.OneLine(job.Name), ""}, {quantity.Seconds(all.Seconds()), ""},
			{share(all), ""},
			{strings.Join(of, ", "), screen.Dim}})
	}
	screen.PrintTable(c.Out, rows)
}

// WhyAnswer is what --json prints.
type WhyAnswer struct {
	Seconds float64                   `json:"seconds"`
	Work    float64                   `json:"work_seconds"`
	Slots   float64                   `json:"slots_on_average"`
	Most    int                       `json:"slots_at_most"`
	Causes  map[history.Cause]float64 `json:"causes"`
	Steps   map[string]float64        `json:"steps"`
	Path    []string                  `json:"path"`
	WhatIf  *WhatIfAnswer             `json:"what_if"` // null: too many jobs were executed
}

func whyJSON(w *history.Why) WhyAnswer {
	a := WhyAnswer{
		Seconds: w.End.Sub(w.Begin).Seconds(), Work: w.Work.Seconds(), Slots: w.Slots, Most: w.Most,
		Causes: map[history.Cause]float64{}, Steps: map[string]float64{},
	}
	for cause, t := range w.Times {
		a.Causes[cause] = t.Seconds()
	}
	for _, s := range w.Steps {
		a.Steps[s.Step] = s.Time.Seconds()
	}
	for _, job := range w.Path {
		a.Path = append(a.Path, job.Name)
	}
	return a
}

// ReportCommand is `fairway report`.
func (c *Commands) ReportCommand() *cobra.Command {
	out := "-"
	command := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Write one page about a run",
		Long: `Write a page (HTML) about a run that needs nothing else, as a supplement of a paper:
its steps, what set its time, what each pilot did when, and failures.`,
		Example: "  fairway report -o report.html\n  fairway report 7 --server /data/fairway -o run7.html",
		Args:    c.numbered,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.Ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				run, about, err := c.history(ctx, client)
				if err != nil {
					return err
				}
				var text bytes.Buffer
				if err := run.Report(&text, about); err != nil {
					return err
				}
				return c.write(out, &text)
			})
		},
	}
	command.Flags().StringVarP(&out, "output", "o", out, "file to write; -: standard output")
	return command
}
