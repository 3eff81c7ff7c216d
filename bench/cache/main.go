// Command cache measures what caches save: workflows W1, W2 and W3 of paper 3, section V,
// scaled down to files of 7 MB and jobs of 3 s, with real pilots on four hosts, beside
// what the simulator foretells for the same set-up.
//
//	go run ./bench/cache -json
//
// The set-up is the experiment internal/sim/paper/hosts.yaml, and each point of it is one
// run: hosts are network namespaces with pilots that share nothing with the server, the
// storage element is nginx behind a proxy that delays and refuses as the experiment says.
// The time counts from when all pilots are there until the last job is done. Needs root
// and nginx.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"fairway/bench/measure"
	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
	"fairway/internal/sim/paper"
	testprogram "fairway/test/program"
)

// row is one line of the result. What was measured is the mean of the rounds, and what was
// simulated that of the simulated runs in which the same accesses fail.
type row struct {
	Workflow            string  `json:"workflow"`
	Element             string  `json:"element"`
	Cache               string  `json:"cache"`
	HitRatio            float64 `json:"hit_ratio"`  // of bytes
	StageIn             float64 `json:"stage_in_s"` // of a job, over all of its attempts, while it held up the job
	Turnaround          float64 `json:"turnaround_s"`
	ElementBytes        float64 `json:"element_bytes"` // that came from it and went to it
	SimulatedHitRatio   float64 `json:"simulated_hit_ratio"`
	SimulatedTurnaround float64 `json:"simulated_turnaround_s"`
	Ratio               float64 `json:"ratio"`        // of turnaround_s to simulated_turnaround_s
	Hidden              float64 `json:"hidden_share"` // of stage-in, behind computing
	Failed              float64 `json:"failed_attempts"`
}

func main() {
	measure.Main(func(run measure.Run) (measure.Result, error) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // the hosts are to go
		defer stop()
		host := measure.NewHost("cache", "/var/tmp")
		defer host.End()
		plan, err := paper.Hosts()
		if err != nil {
			return nil, err
		}
		if run.Only != "" {
			keep(plan, strings.Split(run.Only, ","))
		}
		if run.Quick { // W1 with jobs of 0.2 s at d3f3, without a cache and with C3
			shorten(plan)
		}
		if len(plan.Points) == 0 {
			return nil, fmt.Errorf("-only %s: no point that is to be measured has all of these levels", run.Only)
		}
		rounds := run.Rounds(1, 1) // each with other failures
		if most := plan.Points[0].Experiment.Repetitions; rounds < 1 || rounds > most {
			return nil, fmt.Errorf("-rounds %d: write a number from 1 to %d", rounds, most)
		}
		rows, err := measureAll(ctx, host, plan, rounds)
		return measure.Rows("", rows, row.String), err
	})
}

func (r row) String() string {
	return fmt.Sprintf("%s %s %-6s  hits %4.2f (%4.2f)  turnaround %5.1f s (%5.1f s, ratio %4.2f)  stage-in %5.2f s, "+
		"%3.0f %% hidden  element %4.0f MB",
		r.Workflow, r.Element, r.Cache, r.HitRatio, r.SimulatedHitRatio, r.Turnaround, r.SimulatedTurnaround, r.Ratio,
		r.StageIn, 100*r.Hidden, r.ElementBytes/1e6)
}

// keep leaves the points that have all of the levels.
func keep(plan *experiment.Plan, levels []string) {
	plan.Points = slices.DeleteFunc(plan.Points, func(p experiment.Point) bool {
		return slices.ContainsFunc(levels, func(level string) bool { return !slices.Contains(p.Levels, level) })
	})
}

// shorten leaves what shows that everything works.
func shorten(plan *experiment.Plan) {
	plan.Points = slices.DeleteFunc(plan.Points, func(p experiment.Point) bool {
		return !slices.Equal(p.Levels, []string{"W1", "d3f3", "none"}) &&
			!slices.Equal(p.Levels, []string{"W1", "d3f3", "C3"})
	})
	for i := range plan.Points {
		plan.Points[i].Experiment.Workflow.Run = experiment.Gauss{Mean: 200 * time.Millisecond}
	}
}

// measureAll runs each point of the experiment, simulated and for real.
func measureAll(ctx context.Context, host *measure.Host, plan *experiment.Plan, rounds int) (rows []row, err error) {
	host.Logf("simulating %d runs", plan.Runs())
	simulated, err := sim.Sweep(ctx, plan, nil)
	if err != nil {
		return nil, err
	}
	fairway, err := testprogram.Build(host.TempDir())
	if err != nil {
		return nil, err
	}
	for i, p := range plan.Points {
		jobs, err := sim.JobsOf(&p.Experiment)
		if err != nil {
			return nil, err
		}
		mean := row{Workflow: p.Levels[0], Element: p.Levels[1], Cache: p.Levels[2]}
		for _, foretold := range simulated.Rows[i].Runs[:rounds] {
			r := &round{
				Host: measure.NewHost("cache", "/var/tmp"), fairway: fairway, exp: &p.Experiment, seed: foretold.Seed, jobs: jobs,
			}
			measured, err := r.run(ctx)
			r.End()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Join(p.Levels, " "), err)
			}
			measured.SimulatedHitRatio, measured.SimulatedTurnaround = foretold.Of("hit_ratio"), foretold.Of("turnaround_s")
			host.Logf("%d of %d: %s: %.1f s, foretold %.1f s; hit ratio %.2f, foretold %.2f; "+
				"%.0f failed attempts, foretold %.0f",
				i+1, len(plan.Points), strings.Join(p.Levels, " "), measured.Turnaround, measured.SimulatedTurnaround,
				measured.HitRatio, measured.SimulatedHitRatio, measured.Failed, foretold.Of("failed_attempts"))
			mean.add(measured, float64(rounds))
		}
		mean.Ratio = mean.Turnaround / mean.SimulatedTurnaround
		rows = append(rows, mean)
	}
	return rows, nil
}

// add takes one of so many rounds into the mean.
func (r *row) add(one *row, rounds float64) {
	r.HitRatio += one.HitRatio / rounds
	r.StageIn += one.StageIn / rounds
	r.Turnaround += one.Turnaround / rounds
	r.ElementBytes += one.ElementBytes / rounds
	r.SimulatedHitRatio += one.SimulatedHitRatio / rounds
	r.SimulatedTurnaround += one.SimulatedTurnaround / rounds
	r.Hidden += one.Hidden / rounds
	r.Failed += one.Failed / rounds
}
