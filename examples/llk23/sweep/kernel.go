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
	Rows, Columns int
	Data          []float64
	Factors       []Coefficients
}

// sweepNaive updates rows [top, bottom) and columns [left, right) in place, in
// the order of Listing 8. The elements around them must exist.
func (f *Field) sweepNaive(top, bottom, left, right int) {
	for i := top; i < bottom; i++ {
		for j := left; j < right; j++ {
			at := i*f.Columns + j
			f.Data[at] = update(f.Data[at-f.Columns], f.Data[at-1], f.Data[at+1], f.Data[at+f.Columns], f.Data[at], &f.Factors[at])
		}
	}
}

// sweep does what sweepNaive does, bit for bit, with up to four rows in flight.
// Along a row every element waits for the one before; rows one column apart are
// independent. A single row is left only where there is just one.
func (f *Field) sweep(top, bottom, left, right int) {
	if right-left < 4 {
		f.sweepNaive(top, bottom, left, right)
		return
	}
	for top < bottom {
		switch bottom - top {
		case 1:
			f.sweepNaive(top, bottom, left, right)
			top++
		case 2:
			top = f.skewed(top, 2, left, right, twoRows)
		case 3, 5:
			top = f.skewed(top, 3, left, right, threeRows)
		default:
			top = f.skewed(top, 4, left, right, fourRows)
		}
	}
}

// skewed updates a number of rows and returns the row after them. In a step row
// k updates the column k before that of row 0; the first and last columns, which
// not all rows have, are done one by one. The slices are the bounds checks of
// the loop, which has none.
func (f *Field) skewed(top, rows, left, right int, loop func(first *float64, factors *Coefficients, stride, steps int)) int {
	lead := rows - 1
	for k := range lead {
		f.sweepNaive(top+k, top+k+1, left, left+lead-k)
	}
	at := top*f.Columns + left
	data := f.Data[at-f.Columns-1 : at+rows*f.Columns+right-left+1]
	factors := f.Factors[at : at+lead*f.Columns+right-left]
	loop(&data[f.Columns+1+lead], &factors[lead], f.Columns, right-left-lead)
	for k := range lead {
		f.sweepNaive(top+k+1, top+k+2, right-k-1, right)
	}
	return top + rows
}

const (
	word       = unsafe.Sizeof(float64(0))
	factorSize = unsafe.Sizeof(Coefficients{})
)

func load(p unsafe.Pointer) float64 { return *(*float64)(p) }

// lane is one row in flight: where it is, its factors there, the value left of
// it (new) and the value there (old).
type lane struct {
	at, factors unsafe.Pointer
	west, here  float64
}

// lane k of those that start with row 0 at first.
func newLane(first *float64, factors *Coefficients, stride, k int) lane {
	at := unsafe.Add(unsafe.Pointer(first), k*(stride-1)*int(word))
	return lane{
		at: at, factors: unsafe.Add(unsafe.Pointer(factors), k*(stride-1)*int(factorSize)),
		west: load(unsafe.Add(at, -int(word))), here: load(at),
	}
}

func (l lane) east() float64 { return load(unsafe.Add(l.at, word)) }

// step updates one element and goes on to the next.
func (l lane) step(north, east, south float64) lane {
	l.west = update(north, l.west, east, south, l.here, (*Coefficients)(l.factors))
	*(*float64)(l.at) = l.west
	l.here = east
	l.at, l.factors = unsafe.Add(l.at, word), unsafe.Add(l.factors, factorSize)
	return l
}

// In the loops below what a row needs of its neighbours comes from registers:
// the north value is what the row above computed a step before, and the south
// value is the east value of the row below. Going upwards keeps both.

func fourRows(first *float64, factors *Coefficients, stride, steps int) {
	a, b := newLane(first, factors, stride, 0), newLane(first, factors, stride, 1)
	c, d := newLane(first, factors, stride, 2), newLane(first, factors, stride, 3)
	row := stride * int(word)
	for range steps {
		ea, eb, ec, ed := a.east(), b.east(), c.east(), d.east()
		d = d.step(c.west, ed, load(unsafe.Add(d.at, row)))
		c = c.step(b.west, ec, ed)
		b = b.step(a.west, eb, ec)
		a = a.step(load(unsafe.Add(a.at, -row)), ea, eb)
	}
}

func threeRows(first *float64, factors *Coefficients, stride, steps int) {
	a, b, c := newLane(first, factors, stride, 0), newLane(first, factors, stride, 1), newLane(first, factors, stride, 2)
	row := stride * int(word)
	for range steps {
		ea, eb, ec := a.east(), b.east(), c.east()
		c = c.step(b.west, ec, load(unsafe.Add(c.at, row)))
		b = b.step(a.west, eb, ec)
		a = a.step(load(unsafe.Add(a.at, -row)), ea, eb)
	}
}

func twoRows(first *float64, factors *Coefficients, stride, steps int) {
	a, b := newLane(first, factors, stride, 0), newLane(first, factors, stride, 1)
	row := stride * int(word)
	for range steps {
		ea, eb := a.east(), b.east()
		b = b.step(a.west, eb, load(unsafe.Add(b.at, row)))
		a = a.step(load(unsafe.Add(a.at, -row)), ea, eb)
	}
}
