package sweep

// Cut says how a matrix of N x N elements, of which the outermost are
// constant, is cut into blocks, and how many sweeps a block does at once.
type Cut struct {
	N             int
	Rows, Columns int // of blocks
	Sweeps        int // at once
}

// DefaultSweeps is how many sweeps a block does at once, where it is large
// enough.
const DefaultSweeps = 24

// NewCut cuts an n x n matrix. The number of sweeps at once is at most sweeps,
// small enough for frontiers to touch direct neighbours only, and a multiple of those
// that are in flight together where it is larger.
func NewCut(n, rows, columns, sweeps int) Cut {
	smallest := (n - 2) / max(rows, columns)
	if rows*columns == 1 {
		smallest = sweeps + 1
	}
	sweeps = max(1, min(sweeps, smallest-1))
	if sweeps > lanes {
		sweeps -= sweeps % lanes
	}
	return Cut{N: n, Rows: rows, Columns: columns, Sweeps: sweeps}
}

// span is a range of rows or columns of blocks.
type span struct {
	start, end  int // home, in elements
	first, last bool
}

func (c Cut) span(k, blocks int) span {
	at := func(k int) int { return 1 + k*(c.N-2)/blocks }
	return span{start: at(k), end: at(k + 1), first: k == 0, last: k == blocks-1}
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

// Block is one block with its surroundings as far as it touches them.
type Block struct {
	cut          Cut
	row, column  int
	rows, cols   span
	top, left    int // of the memory, in elements of the matrix
	height, wide int
	factors      []Coefficients
}

// NewBlock makes the block in a row and column of blocks. Its data is kept
// elsewhere, in a location.
func (c Cut) NewBlock(row, column int) *Block {
	b := &Block{cut: c, row: row, column: column, rows: c.span(row, c.Rows), cols: c.span(column, c.Columns)}
	b.top, b.left = max(0, b.rows.start-c.Sweeps-1), max(0, b.cols.start-c.Sweeps-1)
	b.height, b.wide = b.rows.end+1-b.top, b.cols.end+1-b.left
	b.factors = make([]Coefficients, b.height*b.wide)
	return b
}

// Fill writes the initial values.
func (b *Block) Fill(data []float64) {
	for i := range b.height {
		for j := range b.wide {
			data[i*b.wide+j], b.factors[i*b.wide+j] = Initial(b.top+i, b.left+j)
		}
	}
}

// Size returns the number of elements that the block keeps.
func (b *Block) Size() int { return b.height * b.wide }

// Tiles of a block that stay in the second-level cache for all sweeps, with
// their coefficients.
const (
	tileRows    = 24
	tileColumns = 256
)

// compute does a number of sweeps. The tiles within the block follow each other
// as the blocks do.
func (b *Block) compute(data []float64, sweeps int) {
	f := Field{Rows: b.height, Columns: b.wide, Data: data, Factors: b.factors}
	for i := b.rows.start; i < b.rows.end; i += tileRows {
		rows := b.rows.tile(i, tileRows)
		for j := b.cols.start; j < b.cols.end; j += tileColumns {
			cols := b.cols.tile(j, tileColumns)
			for t := 0; t < sweeps; t += lanes {
				b.fly(&f, rows, cols, t, min(t+lanes, sweeps))
			}
		}
	}
}

// fly does sweeps [from, to) of a tile.
func (b *Block) fly(field *Field, rows, cols span, from, to int) {
	f := flight{Field: field}
	for t := from; t < to; t++ {
		top, bottom := b.rows.clip(rows, t)
		left, right := b.cols.clip(cols, t)
		f.add(part{top - b.top, bottom - b.top, left - b.left, right - b.left})
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

// clip returns the range of a tile in sweep t, within that of its block.
func (s span) clip(tile span, t int) (from, to int) {
	low, high := s.at(t)
	from, to = tile.at(t)
	return max(low, min(from, high)), max(low, min(to, high))
}

// Gather copies what the block has computed last, of all blocks the whole
// interior, into the matrix; sweeps is how many it did in the last iteration.
func (b *Block) Gather(data, matrix []float64, sweeps int) {
	top, bottom := b.rows.at(sweeps - 1)
	left, right := b.cols.at(sweeps - 1)
	for i := top; i < bottom; i++ {
		from := (i-b.top)*b.wide + left - b.left
		copy(matrix[i*b.cut.N+left:i*b.cut.N+right], data[from:])
	}
}
