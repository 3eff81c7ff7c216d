//go:build linux

package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/server/publish"
)

type planObject struct {
	Begins  string       `json:"begins"`
	Reasons []string     `json:"reasons"`
	Notes   []string     `json:"notes"`
	Jobs    []plannedJob `json:"jobs"`
	Run     int          `json:"run"`     // jobs that would be executed
	Reuse   int          `json:"reuse"`   // jobs that would not
	Removes []string     `json:"removes"` // results of earlier runs, after success
	More    bool         `json:"more"`

	Estimate *estimate `json:"estimate"` // of the jobs that would be executed; null: nothing is known
}

type plannedJob struct {
	Name string `json:"name"`
	Step string `json:"step"`
	Runs bool   `json:"runs"`
	Why  string `json:"why"`
}

func (c *commands) dryRun(ctx context.Context, o *runOptions) error {
	config, err := c.serverConfig(ctx, o)
	if err != nil {
		return err
	}
	plan, err := server.DryRun(ctx, config)
	if err != nil {
		return o.opened(err)
	}
	p := planObject{
		Begins: plan.Begins, Reasons: append([]string{}, plan.Reasons...), Notes: append([]string{}, plan.Notes...),
		Jobs: []plannedJob{}, Removes: append([]string{}, plan.Removes...), More: plan.More,
	}
	for _, job := range plan.Jobs {
		p.Jobs = append(p.Jobs, plannedJob{Name: job.Name, Step: job.Step, Runs: job.Runs, Why: job.Why})
		if job.Runs {
			p.Run++
		} else {
			p.Reuse++
		}
	}
	if p.Estimate, err = c.estimateOf(ctx, o, config, plan); err != nil {
		c.Announce(fmt.Sprintf("note: how long the jobs take cannot be told: %v", err))
	}
	place := folder.ResultsFolder
	if config.Results != "" {
		place = publish.ShownPlace(config.Results, folder.Layout{})
	}
	return c.Answer(p, func() {
		c.printPlan(config.Workflow.Name, place, &p)
		c.NoteSurvivors(ctx, config.Folder)
	})
}

var beginText = map[string]string{
	"new":   "is new here",
	"on":    "goes on where it ended",
	"again": "begins again, and reuses what is unchanged",
	"done":  "is done: nothing would run",
}

func (c *commands) printPlan(workflow, place string, p *planObject) {
	s := screen.StyleOf(c.Out)
	fmt.Fprintf(c.Out, "%s %s\n", s.Paint(screen.Bold, workflow), beginText[p.Begins])
	if len(p.Reasons) > 0 {
		fmt.Fprintf(c.Out, "  because %s\n", screen.Uncoloured(strings.Join(p.Reasons, "; ")))
	}
	for _, note := range p.Notes {
		fmt.Fprintf(c.Out, "  note: %s\n", screen.Uncoloured(note))
	}
	var rows [][]screen.Cell
	like := map[string]string{} // by step and reason, the first job with it
	for _, job := range p.Jobs {
		what := screen.Cell{"run", ""}
		if !job.Runs {
			what = screen.Cell{"keep", screen.Dim}
		}
		first, more, _ := strings.Cut(job.Why, "\n")
		if same := like[job.Step+"\n"+job.Why]; same != "" && more != "" {
			first, more = strings.TrimSuffix(first, ":")+" as that of "+same, ""
		}
		like[job.Step+"\n"+job.Why] = cmp.Or(like[job.Step+"\n"+job.Why], job.Name)
		rows = append(rows, []screen.Cell{what, {job.Name, ""}, {first, screen.Dim}})
		for line := range strings.SplitSeq(more, "\n") {
			if more != "" {
				rows = append(rows, []screen.Cell{{"", ""}, {"", ""}, {line, screen.Dim}})
			}
		}
	}
	screen.PrintTable(c.Out, rows)
	fmt.Fprintf(c.Out, "%s would run, %d would not", quantity.Count(int64(p.Run), "job"), p.Reuse)
	if p.More {
		fmt.Fprint(c.Out, "; more will follow when it is known what these write, or which files come")
	}
	fmt.Fprintln(c.Out)
	c.printEstimate(p)
	if len(p.Removes) > 0 {
		fmt.Fprintf(c.Out, "results that this run does not make, and would remove when it has succeeded: %d; with "+
			"--keep-results they stay\n", len(p.Removes))
		for _, lfn := range p.Removes {
			fmt.Fprintf(c.Out, "  %s/%s\n", place, screen.OneLine(lfn))
		}
	}
}
