package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/history"
	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// history gathers what is recorded of the attempts of a run. Jobs whose results came from an earlier
// run were not executed, and are left out.
func (c *console) history(ctx context.Context, client wire.WorkflowClient) (*history.Run, history.About, error) {
	executed := func(s *wire.JobSummary) bool { return s.GetAttempts() > 0 || s.GetState() == "failed" }
	return c.historyOf(ctx, client, executed,
		func(run *history.Run, detail *wire.JobDetail) { run.Jobs = append(run.Jobs, history.Of(detail)) })
}

// historyOf looks at the jobs of a run that are wanted, and has them taken into its history.
func (c *console) historyOf(
	ctx context.Context, client wire.WorkflowClient, wanted func(*wire.JobSummary) bool,
	take func(*history.Run, *wire.JobDetail),
) (*history.Run, history.About, error) {
	report, err := progressNow(ctx, client)
	if err != nil {
		return nil, history.About{}, err
	}
	run := &history.Run{Workflow: report.GetWorkflow(), Number: c.number, State: runState(report)}
	about := history.About{Version: programVersion(), Made: time.Now(), Results: report.GetSummary().GetResults()}
	for summary, err := range allJobs(ctx, client, &wire.ListJobsRequest{Limit: exportPage}) {
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

// numbered lets a command take the number of the run as its argument.
func (c *console) numbered(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 1 {
		return fail(exitUsage, "name one run", "it takes one run, not %d", len(arguments))
	}
	if len(arguments) == 1 {
		var err error
		c.number, err = runNumber(arguments[0])
		return err
	}
	return nil
}

func (c *console) whyCommand() *cobra.Command {
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
			return c.ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
				run, _, err := c.history(ctx, client)
				if err != nil {
					return err
				}
				why := run.Explain()
				if why == nil {
					return fail(exitNotFound, "a job that has ended is needed", "nothing was executed in this run")
				}
				foretold, err := foretoldOf(ctx, run)
				if err != nil {
					c.announce(fmt.Sprintf("note: the time under other conditions cannot be told: %v", err))
				}
				answer := whyJSON(why)
				answer.WhatIf = foretold
				return c.answer(answer, func() {
					c.printWhy(why)
					if foretold != nil {
						fmt.Fprintln(c.out, "\nUnder other conditions:")
						c.printWhatIf(foretold)
					}
				})
			})
		},
	}
}

// pathShown is how many jobs of a path are printed, the longest ones.
const pathShown = 30

func (c *console) printWhy(w *history.Why) {
	span := w.End.Sub(w.Begin)
	fmt.Fprintf(c.out, "It took %s; its attempts together %s: %.1f side by side on average, %d at most.\n",
		quantity.Seconds(span.Seconds()), quantity.Seconds(w.Work.Seconds()), w.Slots, w.Most)
	rows := [][]cell{{{"SPENT ON", dim}, {"TIME", dim}, {"SHARE", dim}}}
	share := func(d time.Duration) string { return fmt.Sprintf("%.0f %%", 100*d.Seconds()/max(span.Seconds(), 1e-9)) }
	for _, cause := range history.Causes {
		if t := w.Times[cause]; t > 0 {
			rows = append(rows, []cell{{string(cause), ""}, {quantity.Seconds(t.Seconds()), ""}, {share(t), ""}})
		}
	}
	printTable(c.out, rows)
	fmt.Fprintf(c.out, "\nThe critical path has %s:\n", quantity.Count(int64(len(w.Path)), "job"))
	rows = [][]cell{{{"JOB", dim}, {"TIME", dim}, {"SHARE", dim}, {"OF WHICH", dim}}}
	for i, job := range w.Path {
		if i == pathShown {
			rows = append(rows, []cell{{fmt.Sprintf("and %d more", len(w.Path)-i), dim}})
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
		rows = append(rows, []cell{{oneLine(job.Name), ""}, {quantity.Seconds(all.Seconds()), ""}, {share(all), ""},
			{strings.Join(of, ", "), dim}})
	}
	printTable(c.out, rows)
}

// whyAnswer is what --json prints.
type whyAnswer struct {
	Seconds float64                   `json:"seconds"`
	Work    float64                   `json:"work_seconds"`
	Slots   float64                   `json:"slots_on_average"`
	Most    int                       `json:"slots_at_most"`
	Causes  map[history.Cause]float64 `json:"causes"`
	Steps   map[string]float64        `json:"steps"`
	Path    []string                  `json:"path"`
	WhatIf  *whatIfAnswer             `json:"what_if"` // null: too many jobs were executed
}

func whyJSON(w *history.Why) whyAnswer {
	a := whyAnswer{
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

func (c *console) reportCommand() *cobra.Command {
	out := "-"
	command := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Write one page about a run",
		Long: `Write a page (HTML) about a run that needs nothing else, as a supplement of a paper:
its steps, what set its time, what each pilot did when, and failures.`,
		Example: "  fairway report -o report.html\n  fairway report 7 --server /data/fairway -o run7.html",
		Args:    c.numbered,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.ask(command.Context(), func(ctx context.Context, client wire.WorkflowClient) error {
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
