package sweep

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"fairway/lib/orwl"
)

// task is what one goroutine does in each iteration, step by step.
type task []step

// step is a recurring task in the sense of package orwl: it holds all its pairs
// while it does its work.
type step struct {
	pairs orwl.Pairs
	do    func(sweeps int) error
}

// Insert posts the first requests of all tasks. Nothing is granted before all
// processes have done so. Where there are other processes, their frontiers must
// be served.
func (p *Program) Insert(ctx context.Context) error {
	if p.Paper {
		return p.insertPaper(ctx)
	}
	for row := p.First; row < p.Last; row++ {
		for column := range p.Columns {
			if err := p.add(p.mainTask(ctx, row, column)); err != nil {
				return err
			}
		}
	}
	for _, at := range p.places() {
		err := errors.Join(
			p.add(p.frontierTask(ctx, at, East, South)),
			p.add(p.frontierTask(ctx, at, West, North)),
			p.addImports(ctx, at),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) add(t task, err error) error {
	if len(t) > 0 {
		p.tasks = append(p.tasks, t)
	}
	return err
}

// recur does the iterations of a task, from the one at which the last checkpoint ends.
func (p *Program) recur(ctx context.Context, t task) error {
	for n := p.Saves.Begun(); n*p.Sweeps < p.Iterations; n++ {
		for _, s := range t {
			if err := p.turn(ctx, s, n); err != nil {
				return errors.Join(err, t.cancel())
			}
		}
	}
	return nil
}

// turn does a step in an iteration, which is counted from 0.
func (p *Program) turn(ctx context.Context, s step, n int) error {
	if err := s.pairs.Acquire(ctx); err != nil {
		return err
	}
	left := p.Iterations - n*p.Sweeps
	if err := s.do(min(p.Sweeps, left)); err != nil {
		return err
	}
	if left <= p.Sweeps {
		return s.pairs.Finish()
	}
	return p.Saves.Release(ctx, n+1, s.pairs)
}

func (t task) cancel() error {
	var errs []error
	for _, s := range t {
		errs = append(errs, s.pairs.Cancel())
	}
	return errors.Join(errs...)
}

// Requests stand in each queue as the sequential program would make them: strip
// after strip, for each of them the main task, and then each frontier on its way
// out and into its neighbour; those to the north come a strip later. Each task does its steps in this order too, so the
// lowest of all steps that are to be done is never kept waiting.
const stepsOfStrip = 1 + 2*int(directions)

func (p *Program) mainRank(at cell) int { return (at.row*p.across() + at.column) * stepsOfStrip }

func (p *Program) exportRank(f frontier) int {
	after := f.source
	if f.way == North {
		after.column++ // which brings the corner
	}
	return p.mainRank(after) + 1 + 2*int(f.way)
}

func (p *Program) importRank(f frontier) int { return p.exportRank(f) + 1 }

// mainTask computes a block, one strip after the other.
func (p *Program) mainTask(ctx context.Context, row, column int) (task, error) {
	var t task
	for k := range p.Strips {
		s, err := p.computation(ctx, cell{row, column*p.Strips + k})
		if err != nil {
			return nil, err
		}
		t = append(t, s)
	}
	return t, nil
}

func mainName(at cell) string { return fmt.Sprintf("main %d,%d", at.row, at.column) }

// computation is a step of a main task.
func (p *Program) computation(ctx context.Context, at cell) (step, error) {
	s, own := p.strip(at), new(orwl.Pair)
	own.SetName(mainName(at))
	err := orwl.Insert(ctx, own.Writing(p.data[at]).At(p.mainRank(at)))
	return step{orwl.Pairs{own}, func(sweeps int) error {
		data, err := orwl.WriteAs[float64](own)
		if err == nil {
			p.letFrontiersGo()
			p.binding.claim()
			defer p.binding.release()
			p.computing.Add(int64(processorTime(func() {
				p.binding.enter()
				defer p.binding.leave()
				s.compute(data, p.factors, sweeps)
			})))
			p.updated.Add(s.updates(sweeps))
		}
		return err
	}}, err
}

// letFrontiersGo is for a main task that goes from strip to strip without waiting:
// the frontier tasks that it has just woken, for which others wait, would stand
// behind it until it has computed the next.
func (p *Program) letFrontiersGo() {
	if p.Strips > 1 {
		runtime.Gosched()
	}
}

// frontierTask carries frontiers of a strip to its neighbours, or to where their
// processes find them.
func (p *Program) frontierTask(ctx context.Context, at cell, ways ...Direction) (task, error) {
	var t task
	for _, d := range ways {
		if !p.exists(at.to(d)) {
			continue
		}
		f, to := frontier{at, d}, end{p.data[at.to(d)], p.strip(at.to(d))}
		if !p.own(at.to(d)) {
			to = end{resource: p.frontiers[f]}
		}
		s, err := p.transport(ctx, f, end{p.data[at], p.strip(at)}, to, p.exportRank(f))
		if err != nil {
			return nil, err
		}
		t = append(t, s)
	}
	return t, nil
}

// addImports adds a task for each frontier that comes to a strip from another
// process.
func (p *Program) addImports(ctx context.Context, at cell) error {
	for d := range directions {
		f := frontier{at.from(d), d}
		if !p.exists(f.source) || p.own(f.source) {
			continue
		}
		r, err := p.Others.Resource(ctx, f.String())
		if err != nil {
			return err
		}
		s, err := p.transport(ctx, f, end{resource: r}, end{p.data[at], p.strip(at)}, p.importRank(f))
		if err := p.add(task{s}, err); err != nil {
			return err
		}
	}
	return nil
}
