package sweep

// Direction is where a frontier goes. East, South and SouthEast are forward,
// the others backward.
type Direction int

// The directions of frontiers.
const (
	East Direction = iota
	South
	SouthEast
	West
	North
	NorthWest
	directions
)

func (d Direction) String() string {
	return [...]string{"east", "south", "south-east", "west", "north", "north-west"}[d]
}

// step returns the way to the neighbour in rows and columns of blocks.
func (d Direction) step() (rows, columns int) {
	return [...]int{0, 1, 1, 0, -1, -1}[d], [...]int{1, 0, 1, -1, 0, -1}[d]
}

func (d Direction) forward() bool { return d <= SouthEast }

// segments calls visit for the pieces of rows that block b exports in a
// direction after a number of sweeps: the elements that b was the last to
// update and the neighbour needs. Columns are [from, to).
func (b *Block) segments(d Direction, sweeps int, visit func(row, from, to int)) {
	i0, i1, j0, j1 := b.rows.start, b.rows.end, b.cols.start, b.cols.end
	switch d {
	case East:
		if !b.rows.first {
			for x := sweeps; x >= 1; x-- {
				visit(i0-x, j1-sweeps, j1-x)
			}
		}
		for i := i0; i < i1; i++ {
			visit(i, j1-sweeps, j1)
		}
	case South:
		for x := sweeps; x >= 1; x-- {
			from := j0
			if !b.cols.first {
				from = j0 - x + 1
			}
			visit(i1-x, from, j1)
		}
	case SouthEast:
		for x := sweeps; x >= 1; x-- {
			visit(i1-x, j1-x, j1-x+1)
		}
	case West:
		end := i1
		if !b.rows.last {
			end = i1 - sweeps + 1
		}
		for i := i0; i < end; i++ {
			visit(i, j0-sweeps+1, j0+1)
		}
	case North:
		end := j1
		if !b.cols.last {
			end = j1 - sweeps + 1
		}
		for i := i0 - sweeps + 1; i <= i0; i++ {
			visit(i, j0, end)
		}
	case NorthWest:
		for i := i0 - sweeps + 1; i <= i0; i++ {
			visit(i, j0-sweeps+1, j0+1)
		}
	}
}

// frontierSize returns the number of elements in a frontier.
func (b *Block) frontierSize(d Direction) int {
	size := 0
	b.segments(d, b.cut.Sweeps, func(_, from, to int) { size += max(0, to-from) })
	return size
}

// piece is elements of a block's memory that follow each other.
type piece struct{ at, length int }

// pieces returns where the frontier that block source exports in a direction stands in
// the memory of b, which is source itself or its neighbour there.
func (b *Block) pieces(source *Block, d Direction, sweeps int) []piece {
	var all []piece
	source.segments(d, sweeps, func(row, from, to int) {
		if from < to {
			all = append(all, piece{(row-b.top)*b.wide + from - b.left, to - from})
		}
	})
	return all
}

// pack copies a frontier out of a block's data.
func pack(pieces []piece, data, frontier []float64) {
	at := 0
	for _, p := range pieces {
		at += copy(frontier[at:], data[p.at:p.at+p.length])
	}
}

// unpack copies a frontier into a block's data.
func unpack(pieces []piece, data, frontier []float64) {
	at := 0
	for _, p := range pieces {
		at += copy(data[p.at:p.at+p.length], frontier[at:])
	}
}
