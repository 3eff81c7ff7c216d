package sweep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fairway/orwl"
)

// Resources finds the frontier locations that other processes own, by name.
type Resources interface {
	Resource(name string) (orwl.Resource, error)
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
	// Trace, where set, records all locations.
	Trace *orwl.Trace

	tasks     []task
	blocks    map[place]*Block
	data      map[place]*orwl.Location
	frontiers map[string]*orwl.Location
	computing atomic.Int64
}

type place struct{ row, column int }

// Name returns the name of the frontier location of a block in a direction.
func frontierName(p place, d Direction) string {
	return fmt.Sprintf("frontier %d,%d %v", p.row, p.column, d)
}

func (p *Program) neighbour(at place, d Direction) (place, bool) {
	rows, columns := d.step()
	n := place{at.row + rows, at.column + columns}
	return n, n.row >= 0 && n.row < p.Rows && n.column >= 0 && n.column < p.Columns
}

func (p *Program) own(at place) bool { return at.row >= p.First && at.row < p.Last }

// Build makes the locations with their initial values. Those of frontiers may
// be served to other processes; options are for them.
func (p *Program) Build(options ...orwl.Option) error {
	p.blocks = make(map[place]*Block)
	p.data = make(map[place]*orwl.Location)
	p.frontiers = make(map[string]*orwl.Location)
	for row := max(0, p.First-1); row < min(p.Rows, p.Last+1); row++ {
		for column := range p.Columns {
			at := place{row, column}
			p.blocks[at] = p.NewBlock(row, column)
			if p.own(at) {
				if err := p.build(at, options); err != nil {
					return err
				}
			} else {
				p.blocks[at].factors = nil
			}
		}
	}
	return nil
}

func (p *Program) build(at place, options []orwl.Option) error {
	b := p.blocks[at]
	l, err := p.location(fmt.Sprintf("block %d,%d", at.row, at.column), b.Size(), p.exports(at)+1)
	if err != nil {
		return err
	}
	p.data[at] = l
	initial := make([]float64, b.Size())
	b.Fill(initial)
	l.Initialize(func(bytes []byte) { copy(orwl.BytesAs[float64](bytes), initial) })
	for d := range directions {
		if _, ok := p.neighbour(at, d); !ok {
			continue
		}
		name := frontierName(at, d)
		f, err := p.location(name, b.frontierSize(d), 2, options...)
		if err != nil {
			return err
		}
		p.frontiers[name] = f
		f.Initialize(func(bytes []byte) { pack(b.pieces(b, d, p.Sweeps), initial, orwl.BytesAs[float64](bytes)) })
	}
	return nil
}

func (p *Program) exports(at place) (n int) {
	for d := range directions {
		if _, ok := p.neighbour(at, d); ok {
			n++
		}
	}
	return n
}

func (p *Program) location(name string, elements, requests int, options ...orwl.Option) (*orwl.Location, error) {
	l, err := orwl.New(name, 8*elements, append(options, orwl.StartWith(requests))...)
	if err == nil && p.Trace != nil {
		p.Trace.Attach(l)
	}
	return l, err
}

// Frontiers returns the frontier locations, to be served.
func (p *Program) Frontiers() []*orwl.Location {
	var all []*orwl.Location
	for _, l := range p.frontiers {
		all = append(all, l)
	}
	return all
}

func (p *Program) frontier(at place, d Direction) (orwl.Resource, error) {
	if p.own(at) {
		return p.frontiers[frontierName(at, d)], nil
	}
	return p.Others.Resource(frontierName(at, d))
}

// task is one recurring task: it holds all its pairs while step runs.
type task struct {
	pairs orwl.Pairs
	step  func(iteration, sweeps int) error
}

// Insert posts the first requests of all tasks. Nothing is granted before all
// processes have done so. Where there are other processes, their frontiers must
// be served.
func (p *Program) Insert(ctx context.Context) error {
	for row := p.First; row < p.Last; row++ {
		for column := range p.Columns {
			of, err := p.tasksOf(ctx, place{row, column})
			if err != nil {
				return err
			}
			p.tasks = append(p.tasks, of...)
		}
	}
	return nil
}

// Run runs the tasks to the end.
func (p *Program) Run(ctx context.Context) error {
	var running sync.WaitGroup
	errs := make([]error, len(p.tasks))
	for i, t := range p.tasks {
		running.Go(func() { errs[i] = p.recur(ctx, t) })
	}
	running.Wait()
	return errors.Join(errs...)
}

func (p *Program) recur(ctx context.Context, t task) error {
	for done, iteration := 0, 0; done < p.Iterations; iteration++ {
		if err := t.pairs.Acquire(ctx); err != nil {
			return err
		}
		sweeps := min(p.Sweeps, p.Iterations-done)
		if err := t.step(iteration, sweeps); err != nil {
			return errors.Join(err, t.pairs.Cancel())
		}
		done += sweeps
		end := t.pairs.Release
		if done == p.Iterations {
			end = t.pairs.Finish
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// tasksOf inserts the requests of a block's main task and export tasks. Their
// ranks are the order of the sequential program.
func (p *Program) tasksOf(ctx context.Context, at place) ([]task, error) {
	rank := (at.row*p.Columns + at.column) * (int(directions) + 1)
	main, err := p.mainTask(ctx, at, rank)
	if err != nil {
		return nil, err
	}
	tasks := []task{main}
	for d := range directions {
		if _, ok := p.neighbour(at, d); !ok {
			continue
		}
		export, err := p.exportTask(ctx, at, d, rank+1+int(d))
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, export)
	}
	return tasks, nil
}

func (p *Program) exportTask(ctx context.Context, at place, d Direction, rank int) (task, error) {
	b, from, to := p.blocks[at], new(orwl.Pair), new(orwl.Pair)
	name := fmt.Sprintf("export %d,%d %v", at.row, at.column, d)
	from.SetName(name)
	to.SetName(name)
	all := b.pieces(b, d, p.Sweeps)
	err := orwl.Insert(ctx, from.Reading(p.data[at]).At(rank), to.Writing(p.frontiers[frontierName(at, d)]).At(rank))
	return task{orwl.Pairs{from, to}, func(_, sweeps int) error {
		data, err := orwl.ReadAs[float64](from)
		if err != nil {
			return err
		}
		frontier, err := orwl.WriteAs[float64](to)
		if err != nil {
			return err
		}
		pieces := all
		if sweeps < p.Sweeps {
			pieces = b.pieces(b, d, sweeps)
		}
		pack(pieces, data, frontier)
		return nil
	}}, err
}

// imported is a frontier that a main task reads.
type imported struct {
	source *Block
	to     Direction
	pair   *orwl.Pair
	pieces []piece // of a full iteration
}

func (p *Program) mainTask(ctx context.Context, at place, rank int) (task, error) {
	b, own := p.blocks[at], new(orwl.Pair)
	name := fmt.Sprintf("main %d,%d", at.row, at.column)
	own.SetName(name)
	pairs := orwl.Pairs{own}
	postings := []orwl.Posting{own.Writing(p.data[at]).At(rank)}
	var imports []imported
	for d := range directions {
		rows, columns := d.step()
		source := place{at.row - rows, at.column - columns}
		if source.row < 0 || source.row >= p.Rows || source.column < 0 || source.column >= p.Columns {
			continue
		}
		r, err := p.frontier(source, d)
		if err != nil {
			return task{}, err
		}
		pair := new(orwl.Pair)
		pair.SetName(name)
		pairs = append(pairs, pair)
		postings = append(postings, pair.Reading(r).At(rank))
		imports = append(imports, imported{p.blocks[source], d, pair, b.pieces(p.blocks[source], d, p.Sweeps)})
	}
	err := orwl.Insert(ctx, postings...)
	return task{pairs, func(iteration, sweeps int) error {
		data, err := orwl.WriteAs[float64](own)
		if err != nil {
			return err
		}
		for _, in := range imports {
			if err := in.read(b, data, iteration, sweeps, p.Sweeps); err != nil {
				return err
			}
		}
		p.computing.Add(int64(processorTime(func() { b.compute(data, sweeps) })))
		return nil
	}}, err
}

// read copies the frontier into the block's data. Backward frontiers are of
// the iteration before, which was a full one.
func (in imported) read(b *Block, data []float64, iteration, sweeps, full int) error {
	frontier, err := orwl.ReadAs[float64](in.pair)
	if err != nil {
		return err
	}
	pieces := in.pieces
	switch {
	case !in.to.forward() && iteration == 0:
		return nil
	case in.to.forward() && sweeps < full:
		pieces = b.pieces(in.source, in.to, sweeps)
	}
	unpack(pieces, data, frontier)
	return nil
}

// Drain waits until the other processes have read what they need from this
// one: a write request stands behind all their reads.
func (p *Program) Drain(ctx context.Context) error {
	for _, l := range p.frontiers {
		var h orwl.Handle
		if err := errors.Join(h.WriteRequest(l), h.Acquire(ctx), h.Release()); err != nil {
			return err
		}
	}
	return nil
}

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
		p.blocks[at].Gather(data, matrix, last)
		if err := h.Release(); err != nil {
			return err
		}
	}
	return nil
}
