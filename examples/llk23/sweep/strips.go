package sweep

import "fmt"

// Cut says how a matrix of N x N elements, of which the outermost are
// constant, is cut into blocks, these into strips, and how many sweeps a strip
// does at once.
type Cut struct {
	N             int
	Rows, Columns int // of blocks
	Strips        int // of a block, side by side
	Sweeps        int // at once
}

// DefaultSweeps is how many sweeps a strip does at once, where it is large
// enough.
const DefaultSweeps = 32

// Two blocks wait for each other in a circle; strips let the second start when a part
// of the first is done, and three would leave no slack. They cost frontiers, so
// more blocks have one strip each.
const (
	fewBlocks   = 3
	blockStrips = 4
)

// NewCut cuts an n x n matrix. The number of sweeps at once is at most sweeps,
// small enough for frontiers to touch direct neighbours only, and a multiple of those
// that are in flight together where it is larger.
func NewCut(n, rows, columns, sweeps int) Cut {
	if rows*columns == 1 {
		return newCut(n, 1, 1, 1, sweeps)
	}
	strips := 1
	if rows*columns <= fewBlocks {
		strips = max(1, min(blockStrips, (n-2)/max(1, columns)/(2*sweeps)))
	}
	return newCut(n, rows, columns, strips, sweeps)
}

func newCut(n, rows, columns, strips, sweeps int) Cut {
	smallest := (n - 2) / max(1, rows, columns*strips)
	if rows*columns*strips == 1 {
		smallest = sweeps + 1
	}
	sweeps = max(1, min(sweeps, smallest-1))
	if sweeps > lanes {
		sweeps -= sweeps % lanes
	}
	return Cut{N: n, Rows: rows, Columns: columns, Strips: strips, Sweeps: sweeps}
}

// check says what is wrong with a cut that leaves a strip without elements.
func (c Cut) check() error {
	switch inside := c.N - 2; {
	case c.N < 3:
		return fmt.Errorf("a matrix of %d x %d has nothing to compute: the outermost elements are constant; take 3 x 3 "+
			"or more", c.N, c.N)
	case c.Rows < 1 || c.Columns < 1 || c.Strips < 1 || c.Sweeps < 1:
		return fmt.Errorf("%d x %d blocks in %d strips, %d sweeps at once: give one of each at least", c.Rows, c.Columns,
			c.Strips, c.Sweeps)
	case max(c.Rows, c.across()) > inside:
		return fmt.Errorf("%d x %d blocks do not fit into %d x %d elements: %d rows and columns of blocks are the most",
			c.Rows, c.across(), inside, inside, inside)
	}
	return nil
}

// across is the number of strips side by side in the matrix.
func (c Cut) across() int { return c.Columns * c.Strips }

// span is a range of rows or columns of the matrix.
type span struct {
	start, end  int // home, in elements
	first, last bool
}

// span returns the home of one of a number of parts. With each sweep the bounds
// between parts move by one, those at the ends do not; so that all have the same
// work the bounds are in the middle of their way where parts of one size meet.
func (c Cut) span(k, parts int) span {
	at := func(k int) int {
		if k == 0 || k == parts {
			return 1 + k/parts*(c.N-2)
		}
		return 1 + k*(c.N-2)/parts + (c.Sweeps-1)/2
	}
	return span{start: at(k), end: at(k + 1), first: k == 0, last: k == parts-1}
}

// at returns the range in sweep t: shifted, but not at the ends of the matrix.
func (s span) at(t int) (from, to int) {
	from, to = s.start-t, s.end-t
	if s.first {
		from = s.start
	}
	if s.last {
		to = s.end
	}
	return from, to
}

// strip is a part of a block that is computed and exchanged on its own, with its
// surroundings as far as it touches them.
type strip struct {
	cut          Cut
	rows, cols   span
	top, left    int // of the memory, in elements of the matrix
	height, wide int
}

// strip returns the strip at a place. Its data is kept elsewhere, in a location.
func (c Cut) strip(at cell) *strip {
	s := &strip{cut: c, rows: c.span(at.row, c.Rows), cols: c.span(at.column, c.across())}
	s.top, s.left = max(0, s.rows.start-c.Sweeps-1), max(0, s.cols.start-c.Sweeps-1)
	s.height, s.wide = s.rows.end+1-s.top, s.cols.end+1-s.left
	return s
}

// size returns the number of elements that the strip keeps.
func (s *strip) size() int { return s.height * s.wide }

// updates is how many elements so many sweeps compute.
func (s *strip) updates(sweeps int) int64 {
	return int64(s.rows.end-s.rows.start) * int64(s.cols.end-s.cols.start) * int64(sweeps)
}

// fill writes the initial values.
func (s *strip) fill(data []float64) {
	for i := range s.height {
		for j := range s.wide {
			data[i*s.wide+j] = initialValue(s.top+i, s.left+j)
		}
	}
}

// Tiles of a strip that stay in the second-level cache for all sweeps, with
// their coefficients.
const (
	tileRows    = 24
	tileColumns = 256
)

// compute does a number of sweeps. The tiles within the strip follow each other
// as the strips do.
func (s *strip) compute(data []float64, factors *factors, sweeps int) {
	f := Field{Columns: s.wide, Data: data, Stride: factors.columns, Factors: factors.from(s.top, s.left)}
	for i := s.rows.start; i < s.rows.end; i += tileRows {
		rows := s.rows.tile(i, tileRows)
		for j := s.cols.start; j < s.cols.end; j += tileColumns {
			cols := s.cols.tile(j, tileColumns)
			for t := 0; t < sweeps; t += lanes {
				s.fly(&f, rows, cols, t, min(t+lanes, sweeps))
			}
		}
	}
}

// fly does sweeps [from, to) of a tile.
func (s *strip) fly(field *Field, rows, cols span, from, to int) {
	f := flight{Field: field}
	for t := from; t < to; t++ {
		top, bottom := s.rows.clip(rows, t)
		left, right := s.cols.clip(cols, t)
		f.add(part{top - s.top, bottom - s.top, left - s.left, right - s.left})
	}
	f.run()
}

// tile returns the part of s that begins at start.
func (s span) tile(start, size int) span {
	return span{
		start: start, end: min(start+size, s.end),
		first: s.first && start == s.start, last: s.last && start+size >= s.end,
	}
}

// clip returns the range of a tile in sweep t, within that of its strip.
func (s span) clip(tile span, t int) (from, to int) {
	low, high := s.at(t)
	from, to = tile.at(t)
	return max(low, min(from, high)), max(low, min(to, high))
}

// gather copies what the strip has computed last, of all strips the whole
// interior, into the matrix; sweeps is how many it did in the last iteration.
func (s *strip) gather(data, matrix []float64, sweeps int) {
	top, bottom := s.rows.at(sweeps - 1)
	left, right := s.cols.at(sweeps - 1)
	for i := top; i < bottom; i++ {
		from := (i-s.top)*s.wide + left - s.left
		copy(matrix[i*s.cut.N+left:i*s.cut.N+right], data[from:])
	}
}
