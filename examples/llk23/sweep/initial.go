package sweep

// initialValue is the value with which element (i, j) starts.
func initialValue(i, j int) float64 { return scatter(i, j, 0) }

// coefficients are those of element (i, j): numbers that differ from element to
// element, and are so small that any number of sweeps stays bounded.
func coefficients(i, j int) Coefficients {
	return Coefficients{
		B: 0.25 * scatter(i, j, 1), V: 0.25 * scatter(i, j, 2), U: 0.25 * scatter(i, j, 3),
		R: 0.25 * scatter(i, j, 4), Z: 0.1 * scatter(i, j, 5),
	}
}

// scatter returns a number in [0, 1).
func scatter(i, j int, salt uint64) float64 {
	x := (uint64(i)*0x9e3779b97f4a7c15 + uint64(j)*0xc2b2ae3d27d4eb4f + salt*0x165667b19e3779f9)
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 32
	return float64(x>>11) / (1 << 53)
}

// factors are the coefficients of some rows of the matrix. They never change,
// so the tasks of a process share them without a lock.
type factors struct {
	top, columns int
	values       []Coefficients
}

func newFactors(top, bottom, columns int) *factors {
	f := &factors{top: top, columns: columns, values: make([]Coefficients, (bottom-top)*columns)}
	for k := range f.values {
		f.values[k] = coefficients(top+k/columns, k%columns)
	}
	return f
}

// from returns those from element (i, j) on.
func (f *factors) from(i, j int) []Coefficients { return f.values[(i-f.top)*f.columns+j:] }
