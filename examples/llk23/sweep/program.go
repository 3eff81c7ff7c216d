package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/lib/orwl"
)

// Resources finds the frontier locations that other processes own, by name.
type Resources interface {
	Resource(ctx context.Context, name string) (orwl.Resource, error)
}

// Program is the part of the computation that one process does: the rows of
// blocks from First to Last (exclusive).
type Program struct {
	Cut
	First, Last int
	// Iterations is the number of sweeps over the matrix.
	Iterations int
	// Others is where the frontiers of other processes are; nil when there are
	// none.
	Others Resources
	// Saves, where set, are the checkpoints from which Run goes on, and which it makes.
	Saves *orwl.Checkpoints
	// Trace, where set, records all locations.
	Trace *orwl.Trace
	// Bound says that the process has its processors for itself: each thread that
	// computes is then bound to one of its own while Run runs (on Linux).
	Bound bool
	// Paper has the paper's own scheme of tasks run. Cut is then one of PaperCut.
	Paper bool

	tasks     []task
	factors   *factors
	data      map[cell]*orwl.Location     // of the strips
	frontiers map[frontier]*orwl.Location // to other processes
	exports   map[export]*orwl.Location   // of the paper's scheme
	computing atomic.Int64
	updated   atomic.Int64 // elements, in all sweeps
	binding   *binding
}

func (p *Program) exists(at cell) bool {
	return at.row >= 0 && at.row < p.Rows && at.column >= 0 && at.column < p.across()
}

func (p *Program) own(at cell) bool { return at.row >= p.First && at.row < p.Last }

func (p *Program) places() []cell {
	var all []cell
	for row := p.First; row < p.Last; row++ {
		for column := range p.across() {
			all = append(all, cell{row, column})
		}
	}
	return all
}

// Build makes the locations with their initial values. Those of frontiers are to be
// served to other processes; options are for them.
func (p *Program) Build(options ...orwl.Option) error {
	if err := p.check(); err != nil {
		return err
	}
	p.factors = newFactors(p.strip(cell{p.First, 0}).top, p.strip(cell{p.Last - 1, 0}).rows.end, p.N)
	p.data = make(map[cell]*orwl.Location)
	p.frontiers = make(map[frontier]*orwl.Location)
	p.exports = make(map[export]*orwl.Location)
	for _, at := range p.places() {
		neighbours := p.buildFrontiers
		if p.Paper {
			neighbours = p.buildExports
		}
		if err := errors.Join(p.buildStrip(at), neighbours(at, options)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) buildStrip(at cell) error {
	s, requests := p.strip(at), 1
	for d := range directions {
		if p.exists(at.to(d)) {
			requests += 2 // to the neighbour, and from it
		}
	}
	if p.Paper {
		requests = 1
		for _, w := range ways {
			if p.exists(at.along(w)) {
				requests++
			}
		}
	}
	l, err := p.location(fmt.Sprintf("strip %d,%d", at.row, at.column), s.size(), requests)
	if err != nil {
		return err
	}
	l.Initialize(func(bytes []byte) { s.fill(orwl.BytesAs[float64](bytes)) })
	p.data[at] = l
	return nil
}

func (p *Program) buildFrontiers(at cell, options []orwl.Option) error {
	for d := range directions {
		if to := at.to(d); !p.exists(to) || p.own(to) {
			continue
		}
		f := frontier{at, d}
		l, err := p.location(f.String(), p.strip(at).frontierSize(d), 2, options...)
		if err != nil {
			return err
		}
		p.frontiers[f] = l
	}
	return nil
}

// location makes one at which nothing is granted before all have inserted their
// first requests, in whatever process they are.
func (p *Program) location(name string, elements, requests int, options ...orwl.Option) (*orwl.Location, error) {
	l, err := orwl.New(name, 8*elements, append(options, orwl.StartWith(requests))...)
	if err == nil && p.Trace != nil {
		p.Trace.Attach(l)
	}
	return l, err
}

// Frontiers returns the locations that other processes read, to be served.
func (p *Program) Frontiers() []*orwl.Location {
	var all []*orwl.Location
	for _, l := range p.frontiers {
		all = append(all, l)
	}
	for e, l := range p.exports {
		if !p.own(e.source.along(e.way)) {
			all = append(all, l)
		}
	}
	return all
}

// Locations returns all that Run computes with: what a checkpoint has to save.
func (p *Program) Locations() []*orwl.Location {
	return slices.Concat(slices.Collect(maps.Values(p.data)), slices.Collect(maps.Values(p.frontiers)),
		slices.Collect(maps.Values(p.exports)))
}

// Run runs the tasks to the end.
func (p *Program) Run(ctx context.Context) error {
	if p.Bound {
		p.binding = newBinding(runtime.GOMAXPROCS(0))
		defer p.binding.undo()
	}
	var running sync.WaitGroup
	errs := make([]error, len(p.tasks))
	for i, t := range p.tasks {
		running.Go(func() { errs[i] = p.recur(ctx, t) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// Updated is how many elements main tasks have computed so far, counting each sweep.
func (p *Program) Updated() int64 { return p.updated.Load() }

// Computing returns the processor time that main tasks have spent in the kernel.
func (p *Program) Computing() time.Duration { return time.Duration(p.computing.Load()) }

// Result copies the blocks of this process into the matrix.
func (p *Program) Result(ctx context.Context, matrix []float64) error {
	last := (p.Iterations-1)%p.Sweeps + 1
	for at, l := range p.data {
		var h orwl.Handle
		if err := h.ReadRequest(l); err != nil {
			return err
		}
		if err := h.Acquire(ctx); err != nil {
			return err
		}
		data, err := orwl.ReadAs[float64](&h)
		if err != nil {
			return err
		}
		p.strip(at).gather(data, matrix, last)
		if err := h.Release(); err != nil {
			return err
		}
	}
	return nil
}
