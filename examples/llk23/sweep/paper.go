package sweep

import (
	"context"
	"fmt"

	"fairway/lib/orwl"
)

// The paper's own scheme (section 4.1.2), to be compared with that of Program: one sweep in an
// iteration; for each block a main task, and eight sub-tasks which export its edges and corners,
// each to a location of its own, from where the main tasks of the neighbours read them. A main
// task holds its block and all that its neighbours export to it while it computes. The corners are
// exported because the paper does; this kernel needs none.

// way is where a sub-task exports to, in rows and columns of blocks.
type way struct{ rows, columns int }

// ways are in the order in which requests stand behind that of the main task.
var ways = [...]way{{0, 1}, {1, -1}, {1, 0}, {1, 1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}}

func (w way) back() way { return way{-w.rows, -w.columns} }

// export is what a block exports.
type export struct {
	source cell
	way    way
}

func (e export) String() string {
	return fmt.Sprintf("export of %d,%d to %d,%d", e.source.row, e.source.column,
		e.source.row+e.way.rows, e.source.column+e.way.columns)
}

func (at cell) along(w way) cell { return cell{at.row + w.rows, at.column + w.columns} }

// paperRank is the place of a block's requests, of which there are one and eight.
func (p *Program) paperRank(at cell) int { return (at.row*p.Columns + at.column) * (1 + len(ways)) }

// edge returns the home of s next to its neighbour in a direction.
func (s *strip) edge(w way) (rows, cols span) {
	part := func(whole span, to int) span {
		switch to {
		case -1:
			whole.end = whole.start + 1
		case 1:
			whole.start = whole.end - 1
		}
		return whole
	}
	return part(s.rows, w.rows), part(s.cols, w.columns)
}

// stretches returns where an export stands in its own location, and in the memory of a strip, which
// is that of the block or of a neighbour.
func (p *Program) exported(e export, in *strip) []stretch {
	rows, cols := p.strip(e.source).edge(e.way)
	var all []stretch
	for i := rows.start; i < rows.end; i++ {
		all = append(all, stretch{len(all) * (cols.end - cols.start), in.index(i, cols.start, 0), cols.end - cols.start})
	}
	return all
}

// buildExports makes the locations of what a block exports.
func (p *Program) buildExports(at cell, options []orwl.Option) error {
	for _, w := range ways {
		e := export{at, w}
		to := at.along(w)
		if !p.exists(to) {
			continue
		}
		var shared []orwl.Option
		if !p.own(to) {
			shared = options
		}
		rows, cols := p.strip(at).edge(w)
		l, err := p.location(e.String(), (rows.end-rows.start)*(cols.end-cols.start), 2, shared...)
		if err != nil {
			return err
		}
		l.Initialize(func(bytes []byte) {
			data := orwl.BytesAs[float64](bytes)
			for k := range data {
				width := cols.end - cols.start
				data[k] = initialValue(rows.start+k/width, cols.start+k%width)
			}
		})
		p.exports[e] = l
	}
	return nil
}

// insertPaper posts the first requests of the main tasks and of the sub-tasks.
func (p *Program) insertPaper(ctx context.Context) error {
	for _, at := range p.places() {
		if err := p.add(p.paperMain(ctx, at)); err != nil {
			return err
		}
		for k, w := range ways {
			e := export{at, w}
			if l := p.exports[e]; l != nil {
				if err := p.add(p.subTask(ctx, e, l, p.paperRank(at)+1+k)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// paperMain is the main task of a block.
func (p *Program) paperMain(ctx context.Context, at cell) (task, error) {
	s, rank := p.strip(at), p.paperRank(at)
	own := new(orwl.Pair)
	own.SetName(mainName(at))
	pairs, requests := orwl.Pairs{own}, []orwl.Posting{own.Writing(p.data[at]).At(rank)}
	var imports [][]stretch
	for _, w := range ways {
		from := at.along(w)
		if !p.exists(from) {
			continue
		}
		e, read := export{from, w.back()}, new(orwl.Pair)
		var r orwl.Resource = p.exports[e]
		if !p.own(from) {
			var err error
			if r, err = p.Others.Resource(ctx, e.String()); err != nil {
				return nil, err
			}
		}
		read.SetName(mainName(at))
		pairs, requests = append(pairs, read), append(requests, read.Reading(r).At(rank))
		imports = append(imports, p.exported(e, s))
	}
	err := orwl.Insert(ctx, requests...)
	return task{{pairs, func(int) error {
		data, err := orwl.WriteAs[float64](own)
		if err != nil {
			return err
		}
		for k, all := range imports {
			source, err := orwl.ReadAs[float64](pairs[1+k])
			if err != nil {
				return err
			}
			carry(source, data, all)
		}
		p.computing.Add(int64(processorTime(func() { s.compute(data, p.factors, 1) })))
		p.updated.Add(s.updates(1))
		return nil
	}}}, err
}

// subTask exports an edge or a corner.
func (p *Program) subTask(ctx context.Context, e export, to *orwl.Location, rank int) (task, error) {
	read, write := new(orwl.Pair), new(orwl.Pair)
	read.SetName(e.String())
	write.SetName(e.String())
	all := p.exported(e, p.strip(e.source))
	for k := range all {
		all[k].from, all[k].to = all[k].to, all[k].from
	}
	err := orwl.Insert(ctx, read.Reading(p.data[e.source]).At(rank), write.Writing(to).At(rank))
	return task{{orwl.Pairs{read, write}, func(int) error {
		source, err := orwl.ReadAs[float64](read)
		if err != nil {
			return err
		}
		target, err := orwl.WriteAs[float64](write)
		if err == nil {
			carry(source, target, all)
		}
		return err
	}}}, err
}

// PaperCut cuts an n x n matrix for the paper's scheme.
func PaperCut(n, rows, columns int) Cut { return newCut(n, rows, columns, 1, 1) }
