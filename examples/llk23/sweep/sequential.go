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
	f := &Field{Rows: n, Columns: n, Data: make([]float64, n*n), Factors: make([]Coefficients, n*n)}
	for i := range n {
		for j := range n {
			f.Data[i*n+j], f.Factors[i*n+j] = Initial(i, j)
		}
	}
	return f
}

// Boundary writes the initial values of the constant elements.
func Boundary(n int, matrix []float64) {
	for k := range n {
		for _, at := range [][2]int{{0, k}, {n - 1, k}, {k, 0}, {k, n - 1}} {
			matrix[at[0]*n+at[1]], _ = Initial(at[0], at[1])
		}
	}
}

// Blocked does the sweeps on one core without any lock, in one block: what
// locks and waiting are measured against.
func Blocked(n, iterations, sweeps int) (matrix []float64, compute func()) {
	c := NewCut(n, 1, 1, sweeps)
	b := c.NewBlock(0, 0)
	data := make([]float64, b.Size())
	b.Fill(data)
	return data, func() {
		for done := 0; done < iterations; done += c.Sweeps {
			b.compute(data, min(c.Sweeps, iterations-done))
		}
	}
}
