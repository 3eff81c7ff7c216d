package sweep

import "fmt"

// Direction is where a frontier goes. East and South are forward, the others
// backward. Corners make the way in two steps: what a strip gets from the side it
// passes on up or down.
type Direction int

// The directions of frontiers.
const (
	East Direction = iota
	South
	West
	North
	directions
)

func (d Direction) String() string {
	return [...]string{"east", "south", "west", "north"}[d]
}

// step returns the way to the neighbour in rows of blocks and columns of strips.
func (d Direction) step() (rows, columns int) {
	return [...]int{0, 1, 0, -1}[d], [...]int{1, 0, -1, 0}[d]
}

// cell is where a strip lies: its row of blocks and its column of strips.
type cell struct{ row, column int }

// from returns the place from which a frontier comes here in a direction.
func (at cell) from(d Direction) cell {
	rows, columns := d.step()
	return cell{at.row - rows, at.column - columns}
}

// to returns the place where a frontier goes in a direction.
func (at cell) to(d Direction) cell {
	rows, columns := d.step()
	return cell{at.row + rows, at.column + columns}
}

// frontier is what goes from a strip in a direction.
type frontier struct {
	source cell
	way    Direction
}

// String is also the name of its location, where it has one.
func (f frontier) String() string {
	return fmt.Sprintf("frontier %d,%d %v", f.source.row, f.source.column, f.way)
}

// segments calls visit for the pieces of rows that strip s exports in a
// direction after a number of sweeps: the elements that the neighbour needs and that
// s was the last to update or, of a corner, has got from the side. Columns are
// [from, to).
func (s *strip) segments(d Direction, sweeps int, visit func(row, from, to int)) {
	i0, i1, j0, j1 := s.rows.start, s.rows.end, s.cols.start, s.cols.end
	switch d {
	case East:
		if !s.rows.first {
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
			if !s.cols.first {
				from = j0 - x
			}
			visit(i1-x, from, j1)
		}
	case West:
		start, end := i0, i1
		if !s.rows.first {
			start = i0 - sweeps + 1
		}
		if !s.rows.last {
			end = i1 - sweeps + 1
		}
		for i := start; i < end; i++ {
			visit(i, j0-sweeps+1, j0+1)
		}
	case North:
		end := j1
		if !s.cols.last {
			end = j1 + 1
		}
		for i := i0 - sweeps + 1; i <= i0; i++ {
			visit(i, j0, end)
		}
	}
}

// stretch is elements that follow each other, in two memories.
type stretch struct{ from, to, length int }

// stretches returns where the frontier of s in a direction stands in the memory of
// two holders: s itself, its neighbour there, or nil for memory that has the frontier
// alone.
func (s *strip) stretches(d Direction, sweeps int, from, to *strip) []stretch {
	var all []stretch
	size := 0
	s.segments(d, sweeps, func(row, start, end int) {
		if start >= end {
			return
		}
		all = append(all, stretch{from.index(row, start, size), to.index(row, start, size), end - start})
		size += end - start
	})
	return all
}

// index returns where an element of the matrix stands; without a strip, what else is
// given.
func (s *strip) index(row, column, otherwise int) int {
	if s == nil {
		return otherwise
	}
	return (row-s.top)*s.wide + column - s.left
}

// frontierSize returns the number of elements in a frontier.
func (s *strip) frontierSize(d Direction) int {
	size := 0
	s.segments(d, s.cut.Sweeps, func(_, start, end int) { size += max(0, end-start) })
	return size
}

// carry copies a frontier from one memory to another.
func carry(source, target []float64, all []stretch) {
	for _, s := range all {
		copy(target[s.to:s.to+s.length], source[s.from:])
	}
}
