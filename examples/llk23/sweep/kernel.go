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

// rowsInFlight is how many rows sweep updates at once. Along a row every
// element waits for the one before; rows one column apart are independent.
const rowsInFlight = 4

// sweep does what sweepNaive does, bit for bit, with several rows in flight.
func (f *Field) sweep(top, bottom, left, right int) {
	width := right - left
	if width < rowsInFlight {
		f.sweepNaive(top, bottom, left, right)
		return
	}
	for ; bottom-top >= rowsInFlight; top += rowsInFlight {
		f.fourRows(top, left, width)
	}
	f.sweepNaive(top, bottom, left, right)
}

// fourRows updates width elements of four rows. In step s row k updates column
// s-k; the first and last columns, which not all rows have, are done one by
// one. It has no bounds checks: the slices below are what it relies on.
func (f *Field) fourRows(top, left, width int) {
	f.sweepNaive(top, top+1, left, left+3)
	f.sweepNaive(top+1, top+2, left, left+2)
	f.sweepNaive(top+2, top+3, left, left+1)

	stride := f.Columns
	at := top*stride + left
	data := f.Data[at-stride-1 : at+4*stride+width+1]
	factors := f.Factors[at : at+3*stride+width]
	skewedRows(&data[stride+1], &factors[0], stride, width-3)

	right := left + width
	f.sweepNaive(top+1, top+2, right-1, right)
	f.sweepNaive(top+2, top+3, right-2, right)
	f.sweepNaive(top+3, top+4, right-3, right)
}

const word = unsafe.Sizeof(float64(0))

func load(p unsafe.Pointer) float64 { return *(*float64)(p) }

// skewedRows does steps of four rows, row 0 from column 3 on. first is element
// (0, 0) of the rows. What a row needs of its neighbours comes from registers:
// the north value is what the row above computed a step before, the south value
// is the east value of the row below.
func skewedRows(first *float64, factors *Coefficients, stride, steps int) {
	row := uintptr(stride) * word
	r0 := unsafe.Add(unsafe.Pointer(first), 3*word)
	r1 := unsafe.Add(r0, row-word)
	r2 := unsafe.Add(r1, row-word)
	r3 := unsafe.Add(r2, row-word)
	north := unsafe.Add(r0, -int(row))
	south := unsafe.Add(r3, row)

	const factorSize = unsafe.Sizeof(Coefficients{})
	factorRow := uintptr(stride)*factorSize - factorSize
	k0 := unsafe.Add(unsafe.Pointer(factors), 3*factorSize)
	k1 := unsafe.Add(k0, factorRow)
	k2 := unsafe.Add(k1, factorRow)
	k3 := unsafe.Add(k2, factorRow)

	w0, w1, w2, w3 := load(unsafe.Add(r0, -8)), load(unsafe.Add(r1, -8)), load(unsafe.Add(r2, -8)), load(unsafe.Add(r3, -8))
	c0, c1, c2, c3 := load(r0), load(r1), load(r2), load(r3)
	for at := uintptr(0); at < uintptr(steps)*word; at += word {
		e0, e1, e2, e3 := load(unsafe.Add(r0, at+word)), load(unsafe.Add(r1, at+word)), load(unsafe.Add(r2, at+word)), load(unsafe.Add(r3, at+word))
		n3, n2, n1 := w2, w1, w0
		w0 = update(load(unsafe.Add(north, at)), w0, e0, e1, c0, (*Coefficients)(k0))
		w1 = update(n1, w1, e1, e2, c1, (*Coefficients)(k1))
		w2 = update(n2, w2, e2, e3, c2, (*Coefficients)(k2))
		w3 = update(n3, w3, e3, load(unsafe.Add(south, at)), c3, (*Coefficients)(k3))
		*(*float64)(unsafe.Add(r0, at)), *(*float64)(unsafe.Add(r1, at)) = w0, w1
		*(*float64)(unsafe.Add(r2, at)), *(*float64)(unsafe.Add(r3, at)) = w2, w3
		c0, c1, c2, c3 = e0, e1, e2, e3
		k0, k1 = unsafe.Add(k0, factorSize), unsafe.Add(k1, factorSize)
		k2, k3 = unsafe.Add(k2, factorSize), unsafe.Add(k3, factorSize)
	}
}
