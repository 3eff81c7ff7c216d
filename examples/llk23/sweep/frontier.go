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

// pack copies a frontier out of the block's data.
func (b *Block) pack(d Direction, sweeps int, data, frontier []float64) {
	at := 0
	b.segments(d, sweeps, func(row, from, to int) {
		if from < to {
			at += copy(frontier[at:], data[b.index(row, from):][:to-from])
		}
	})
}

// unpack copies a frontier that block source exported into the data of b.
func (b *Block) unpack(source *Block, d Direction, sweeps int, data, frontier []float64) {
	at := 0
	source.segments(d, sweeps, func(row, from, to int) {
		if from < to {
			at += copy(data[b.index(row, from):][:to-from], frontier[at:])
		}
	})
}

func (b *Block) index(row, column int) int { return (row-b.top)*b.wide + column - b.left }
