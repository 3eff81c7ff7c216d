package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fairway/internal/sim/experiment"
)

// Results are what the points of a plan led to, in their order.
type Results struct {
	Plan *experiment.Plan
	Rows []Row
}

// Row is one point: mean and standard deviation over its repetitions.
type Row struct {
	Levels   []string
	Runs     []Run
	Mean, SD []float64 // in the order of Metrics
}

// Run is one repetition.
type Run struct {
	Seed     uint64
	Metrics  []float64         // in the order of Metrics
	Timeline []Sample          // where the experiment wants it
	Accesses []Access          // of the first repetition, where the experiment wants it
	Attempts []RecordedAttempt // of a replay, in the order of their ends

	Faced     Happened      // what went wrong
	Submitted time.Duration // when, on the clock of the run, the first job was submitted
}

// Sweep executes every repetition of every point, on all processors.
// progress, which may be nil, hears how many of how many are done; it is
// called by one goroutine at a time. A run that goes wrong ends the sweep
// with an error that says how to repeat it.
func Sweep(ctx context.Context, plan *experiment.Plan, progress func(done, total int)) (*Results, error) {
	res := &Results{Plan: plan, Rows: make([]Row, len(plan.Points))}
	type place struct{ point, rep int }
	var all []place
	for i, p := range plan.Points {
		res.Rows[i] = Row{Levels: p.Levels, Runs: make([]Run, p.Experiment.Repetitions)}
		for rep := range p.Experiment.Repetitions {
			all = append(all, place{i, rep})
		}
	}
	var mutex sync.Mutex
	done := 0
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, at := range all {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			exp := plan.Points[at.point].Experiment
			run, err := Once(exp, at.rep)
			if err != nil {
				return fmt.Errorf("%s, repetition %d (fairway sim --seed %d %s): %w", plan.Label(at.point), at.rep+1, exp.Seed,
					cmp.Or(plan.Within, plan.File), err)
			}
			res.Rows[at.point].Runs[at.rep] = *run
			mutex.Lock()
			defer mutex.Unlock()
			done++
			if progress != nil {
				progress(done, len(all))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	if done < len(all) {
		return nil, context.Canceled
	}
	for i := range res.Rows {
		res.Rows[i].summarize()
	}
	return res, nil
}

// Once executes one repetition, from 0, of an experiment.
func Once(exp experiment.Experiment, rep int) (*Run, error) {
	work, err := build(&exp, Stream(mix(exp.Seed)+uint64(rep), "workflow"))
	if err != nil {
		return nil, err
	}
	r := newRun(&exp, work, rep)
	if err := r.execute(); err != nil {
		return nil, err
	}
	run := &Run{Seed: r.seed, Metrics: r.metrics(), Submitted: r.submitted, Faced: r.faced, Timeline: r.timeline}
	if rep == 0 {
		run.Accesses = r.accesses
	}
	return run, nil
}

func (r *Row) summarize() {
	r.Mean, r.SD = make([]float64, len(Metrics)), make([]float64, len(Metrics))
	for m := range Metrics {
		values := make([]float64, len(r.Runs))
		for i, run := range r.Runs {
			values[i] = run.Metrics[m]
		}
		r.Mean[m], r.SD[m] = meanAndSD(values)
	}
}

// meanAndSD returns the mean and the standard deviation of a sample (n-1).
func meanAndSD(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	if slices.Min(values) == slices.Max(values) {
		return values[0], 0 // and not what rounding makes of it
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sd / float64(len(values)-1))
}

// Row returns the point with these levels, which must be there.
func (res *Results) Row(levels ...string) *Row {
	for i := range res.Rows {
		if fmt.Sprint(res.Rows[i].Levels) == fmt.Sprint(levels) {
			return &res.Rows[i]
		}
	}
	panic(fmt.Sprintf("sim: no point %v", levels))
}

// Of returns mean and standard deviation of one of Metrics.
func (r *Row) Of(metric string) (mean, sd float64) {
	i := metricIndex(metric)
	return r.Mean[i], r.SD[i]
}

// Value returns the mean of one of Metrics.
func (r *Row) Value(metric string) float64 { return r.Mean[metricIndex(metric)] }

func metricIndex(name string) int {
	for i, m := range Metrics {
		if m == name {
			return i
		}
	}
	panic("sim: no metric " + name)
}

// Of returns one of Metrics.
func (r *Run) Of(metric string) float64 { return r.Metrics[metricIndex(metric)] }

// SweepAll sweeps plans one after the other and counts their runs together.
func SweepAll(ctx context.Context, plans []*experiment.Plan, progress func(done, total int)) ([]*Results, error) {
	total, before := 0, 0
	for _, p := range plans {
		total += p.Runs()
	}
	var all []*Results
	for _, p := range plans {
		res, err := Sweep(ctx, p, func(done, _ int) {
			if progress != nil {
				progress(before+done, total)
			}
		})
		if err != nil {
			return nil, err
		}
		before += p.Runs()
		all = append(all, res)
	}
	return all, nil
}
