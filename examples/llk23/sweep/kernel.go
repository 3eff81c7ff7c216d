package sweep

import "unsafe"

// Coefficients are the five factors of one element, side by side so that a row
// of them needs one pointer.
type Coefficients struct{ B, V, U, R, Z float64 }

// update is the statement of Listing 8. The conversions keep compilers from
// fusing a product with a sum, which would give other bits.
func update(n, w, e, s, c float64, k *Coefficients) float64 {
	q := float64(n*k.B) + float64(w*k.V) + float64(e*k.U) + float64(s*k.R) + k.Z - c
	return c + float64(0.175*q)
}

// Field is a rectangle of a matrix in row order, with its coefficients. Rows
// and columns count from the first element in memory.
type Field struct {
	Columns int // from one row of Data to the next
	Data    []float64
	Stride  int // from one row of Factors to the next
	Factors []Coefficients
}

// sweep updates rows [top, bottom) and columns [left, right) in place, in the
// order of Listing 8. The elements around them must exist.
func (f *Field) sweep(top, bottom, left, right int) {
	for i := top; i < bottom; i++ {
		for j := left; j < right; j++ {
			f.one(i, j)
		}
	}
}

func (f *Field) one(i, j int) {
	at := i*f.Columns + j
	f.Data[at] = update(f.Data[at-f.Columns], f.Data[at-1], f.Data[at+1], f.Data[at+f.Columns], f.Data[at],
		&f.Factors[i*f.Stride+j])
}

// lanes is how many sweeps are under way at once. Along a row every element
// waits for the one before, for about 26 cycles; eight chains side by side keep
// the arithmetic units busy.
const lanes = 8

// flight is several sweeps over a field, one row and one column behind each other:
// where sweep 0 is at (i, j), sweep l is at (i-l, j-l). It gives the bits of
// one sweep after the other.
type flight struct {
	*Field
	sweeps int // up to lanes
	parts  [lanes]part
}

// part is what one sweep updates: rows [top, bottom) and columns [left, right).
type part struct{ top, bottom, left, right int }

// add makes p the part of the next sweep.
func (f *flight) add(p part) {
	f.parts[f.sweeps] = p
	f.sweeps++
}

// bounds returns the rows and columns of sweep 0 for which some sweep has something to
// do, and those for which all have.
func (f *flight) bounds() (some, all part) {
	some = f.parts[0]
	all = some
	for l, p := range f.parts[:f.sweeps] {
		p = part{p.top + l, p.bottom + l, p.left + l, p.right + l}
		some = part{min(some.top, p.top), max(some.bottom, p.bottom), min(some.left, p.left), max(some.right, p.right)}
		all = part{max(all.top, p.top), min(all.bottom, p.bottom), max(all.left, p.left), min(all.right, p.right)}
	}
	if f.sweeps < lanes || all.right <= all.left {
		all.bottom = all.top
	}
	return some, all
}

// run passes row by row with all sweeps, each along its own row. Where not all of
// them have something to do, at the ends, elements are done one by one.
func (f *flight) run() {
	some, all := f.bounds()
	for i := some.top; i < some.bottom; i++ {
		if i < all.top || i >= all.bottom {
			f.ragged(i, some.left, some.right)
			continue
		}
		f.ragged(i, some.left, all.left)
		f.steps(i, all.left, all.right)
		f.ragged(i, all.right, some.right)
	}
}

// ragged does columns [from, to) of sweep 0, and of the others what goes with
// them.
func (f *flight) ragged(i, from, to int) {
	for j := from; j < to; j++ {
		for l, p := range f.parts[:f.sweeps] {
			if i-l >= p.top && i-l < p.bottom && j-l >= p.left && j-l < p.right {
				f.one(i-l, j-l)
			}
		}
	}
}

// steps does the same where all sweeps have something to do. The slices are
// the bounds checks of the loop, which has none.
func (f *flight) steps(i, from, to int) {
	const behind = lanes - 1 // rows and columns, of the last sweep
	at := (i-behind)*f.Columns + from - behind
	data := f.Data[at-f.Columns : at+behind*(f.Columns+1)+f.Columns+to-from]
	at = (i-behind)*f.Stride + from - behind
	factors := f.Factors[at : at+behind*(f.Stride+1)+to-from]
	eightLanes(unsafe.Pointer(&data[f.Columns]), unsafe.Pointer(&factors[0]), f.Columns, f.Stride, to-from)
}

const (
	word       = int(unsafe.Sizeof(float64(0)))
	factorSize = int(unsafe.Sizeof(Coefficients{}))
)

func load(p unsafe.Pointer, offset int) float64 { return *(*float64)(unsafe.Add(p, offset)) }

func store(p unsafe.Pointer, offset int, v float64) { *(*float64)(unsafe.Add(p, offset)) = v }

func factor(p unsafe.Pointer, offset int) *Coefficients {
	return (*Coefficients)(unsafe.Add(p, offset))
}

// eightLanes starts with the last sweep at p. What a sweep needs in the south
// is what the sweep before it computed a step ago, which is in a register; what it
// needs in the north lies east of the sweep behind it.
func eightLanes(p, f unsafe.Pointer, columns, stride, steps int) {
	d, e := (columns+1)*word, (stride+1)*factorSize
	laneSteps(p, f, -columns*word, d, 2*d, 3*d, e, 2*e, 3*e, steps)
}

// laneSteps gets multiples of both distances as arguments: where the compiler sees that they are
// multiples it computes each address anew, and keeps those that it has no register for in memory.
//
//go:noinline
func laneSteps(p, f unsafe.Pointer, row, d, d2, d3, e, e2, e3, steps int) {
	q, g := unsafe.Add(p, d+d3), unsafe.Add(f, e+e3)
	north, south := unsafe.Add(p, row), unsafe.Add(q, d3-row)
	w0, w1, w2, w3 := load(p, -word), load(p, d-word), load(p, d2-word), load(p, d3-word)
	w4, w5, w6, w7 := load(q, -word), load(q, d-word), load(q, d2-word), load(q, d3-word)
	for range steps {
		east := load(p, word)
		w0 = update(load(north, 0), w0, east, w1, load(p, 0), factor(f, 0))
		store(p, 0, w0)
		n := east
		east = load(p, d+word)
		w1 = update(n, w1, east, w2, load(p, d), factor(f, e))
		store(p, d, w1)
		n, east = east, load(p, d2+word)
		w2 = update(n, w2, east, w3, load(p, d2), factor(f, e2))
		store(p, d2, w2)
		n, east = east, load(p, d3+word)
		w3 = update(n, w3, east, w4, load(p, d3), factor(f, e3))
		store(p, d3, w3)
		n, east = east, load(q, word)
		w4 = update(n, w4, east, w5, load(q, 0), factor(g, 0))
		store(q, 0, w4)
		n, east = east, load(q, d+word)
		w5 = update(n, w5, east, w6, load(q, d), factor(g, e))
		store(q, d, w5)
		n, east = east, load(q, d2+word)
		w6 = update(n, w6, east, w7, load(q, d2), factor(g, e2))
		store(q, d2, w6)
		w7 = update(east, w7, load(q, d3+word), load(south, 0), load(q, d3), factor(g, e3))
		store(q, d3, w7)
		p, q, north, south = unsafe.Add(p, word), unsafe.Add(q, word), unsafe.Add(north, word), unsafe.Add(south, word)
		f, g = unsafe.Add(f, factorSize), unsafe.Add(g, factorSize)
	}
}
