//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/forecast"
	"fairway/internal/history"
	"fairway/internal/quantity"
	"fairway/internal/server"
	"fairway/internal/server/listen"
	"fairway/internal/sim"
	"fairway/internal/wire"
)

// estimate is what planned jobs are expected to take, by earlier runs.
type estimate struct {
	Seconds   float64  `json:"seconds"`
	Low       float64  `json:"low_seconds"`
	High      float64  `json:"high_seconds"`
	Slots     int      `json:"slots"`
	CoreHours float64  `json:"core_hours"`
	Read      int64    `json:"bytes_read"`
	Written   int64    `json:"bytes_written"`
	Jobs      int      `json:"jobs"`      // whose steps were run before: the estimate is of these
	NewSteps  []string `json:"new_steps"` // that never were
}

// estimateOf estimates what a plan takes, by the last run of the folder or, where that has none, by
// the last one of the workflow at the server of the environment. It is nil where nothing would run, or
// nothing is known. An error, as of a server that does not answer, is none of the plan.
func (c *commands) estimateOf(
	ctx context.Context, o *runOptions, config server.Config, plan *server.Plan,
) (*estimate, error) {
	var jobs []forecast.Planned
	for i := range plan.Jobs {
		if plan.Jobs[i].Runs {
			jobs = append(jobs, plannedOf(&plan.Jobs[i]))
		}
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	change := forecast.Change{}
	pilots := 1
	if config.System != nil {
		pilots = config.Site.MaxPilots
		if len(o.pilots.Sites) == 0 {
			change.Pilots = pilots
		}
	}
	model, err := c.earlier(ctx, config, pilots)
	if err != nil || model == nil {
		return nil, err
	}
	e, err := model.Estimate(jobs, change, model.DrawsFor())
	if err != nil {
		return nil, err
	}
	return &estimate{
		Seconds: e.Time.Seconds(), Low: e.Low.Seconds(), High: e.High.Seconds(), Slots: e.Slots,
		CoreHours: e.Computing.Hours(), Read: e.Read, Written: e.Written, Jobs: e.Known,
		NewSteps: append([]string{}, e.New...),
	}, nil
}

func plannedOf(j *server.PlannedJob) forecast.Planned {
	p := forecast.Planned{
		Name: j.Name, Step: j.Step, Writes: j.Writes, MilliCPUs: j.MilliCPUs, Priority: j.Priority,
	}
	for _, f := range j.Reads {
		p.Reads = append(p.Reads, sim.RecordedFile{LFN: f.LFN, Size: f.Size})
	}
	return p
}

func (c *commands) earlier(ctx context.Context, config server.Config, pilots int) (model *forecast.Model, err error) {
	learn := func(ctx context.Context, client wire.WorkflowClient) error {
		var reused []history.Job
		run, _, err := c.HistoryOf(ctx, client,
			func(s *wire.JobSummary) bool { return s.GetAttempts() > 0 || s.GetReused() },
			func(run *history.Run, detail *wire.JobDetail) {
				if detail.GetSummary().GetReused() {
					reused = append(reused, history.Earlier(detail))
				} else {
					run.Jobs = append(run.Jobs, history.Of(detail))
				}
			})
		if err == nil {
			model, err = forecast.Earlier(run, reused, pilots)
		}
		if errors.Is(err, forecast.ErrNothing) {
			return nil
		}
		return err
	}
	if console.HasState(config.Folder) {
		if err := console.AskIn(ctx, config.Folder, learn); err != nil || model != nil {
			return model, err
		}
	}
	if c.Service == "" {
		return nil, nil
	}
	number := uint32(0)
	err = c.AskService(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		list, err := client.ListRuns(ctx, &wire.ListRunsRequest{States: []string{"succeeded"}})
		for _, run := range list.GetRuns() {
			if number == 0 && run.GetWorkflow() == config.Workflow.Name {
				number = run.GetRun()
			}
		}
		return err
	})
	if err != nil || number == 0 {
		return nil, err
	}
	err = c.AskService(listen.About(ctx, number), learn)
	return model, err
}

func (c *commands) printEstimate(p *planObject) {
	e := p.Estimate
	switch {
	case e == nil && p.Run > 0:
		fmt.Fprintln(c.Out, "how long that takes is not known: no attempt of an earlier run is recorded here")
	case e == nil:
	case e.Jobs > 0:
		fmt.Fprintf(c.Out, "by earlier runs it takes %s (%s to %s) with %s: %s core-hours, %s read, %s written\n",
			quantity.Seconds(e.Seconds), quantity.Seconds(e.Low), quantity.Seconds(e.High),
			quantity.Count(int64(e.Slots), "slot"), fewDigits(e.CoreHours), quantity.Bytes(e.Read), quantity.Bytes(e.Written))
	}
	if e != nil && len(e.NewSteps) > 0 {
		fmt.Fprintf(c.Out, "  without jobs of steps that were never run: %s\n", screen.OneLine(strings.Join(e.NewSteps,
			", ")))
	}
}

func fewDigits(value float64) string { return fmt.Sprintf("%.2g", value) }
