package sweep

// Sequential returns the n x n matrix after a number of sweeps as Listing 8
// computes it.
func Sequential(n, iterations int) []float64 {
	f := Matrix(n)
	for range iterations {
		f.sweep(1, n-1, 1, n-1)
	}
	return f.Data
}

// Matrix returns the initial n x n matrix with its coefficients.
func Matrix(n int) *Field {
	f := &Field{Columns: n, Data: make([]float64, n*n), Stride: n, Factors: newFactors(0, n, n).values}
	for k := range f.Data {
		f.Data[k] = initialValue(k/n, k%n)
	}
	return f
}

// Boundary writes the initial values of the constant elements.
func Boundary(n int, matrix []float64) {
	for k := range n {
		for _, at := range [][2]int{{0, k}, {n - 1, k}, {k, 0}, {k, n - 1}} {
			matrix[at[0]*n+at[1]] = initialValue(at[0], at[1])
		}
	}
}

// Blocked does the sweeps on one core without any lock, in one block: what
// locks and waiting are measured against.
func Blocked(n, iterations, sweeps int) (matrix []float64, compute func()) {
	c := NewCut(n, 1, 1, sweeps)
	s, f := c.strip(cell{}), newFactors(0, n, n)
	data := make([]float64, s.size())
	s.fill(data)
	return data, func() {
		for done := 0; done < iterations; done += c.Sweeps {
			s.compute(data, f, min(c.Sweeps, iterations-done))
		}
	}
}
