package sweep

import (
	"context"
	"math"
	"testing"
)

func sameBits(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func run(t *testing.T, c Cut, iterations int) []float64 {
	t.Helper()
	p := Program{Cut: c, Last: c.Rows, Iterations: iterations}
	if err := p.Build(); err != nil {
		t.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	matrix := make([]float64, c.N*c.N)
	Boundary(c.N, matrix)
	if err := p.Result(context.Background(), matrix); err != nil {
		t.Fatal(err)
	}
	return matrix
}

func TestSameBitsAsSequential(t *testing.T) {
	for _, n := range []int{12, 41, 70} {
		for _, iterations := range []int{1, 7, 20} {
			want := Sequential(n, iterations)
			for _, blocks := range [][2]int{{1, 1}, {1, 3}, {3, 1}, {2, 2}, {3, 3}} {
				for _, sweeps := range []int{1, 2, 5, 8} {
					c := NewCut(n, blocks[0], blocks[1], sweeps)
					if got := run(t, c, iterations); !sameBits(got, want) {
						t.Errorf("%+v, %d iterations: other bits than the sequential sweep", c, iterations)
					}
				}
			}
		}
	}
}

func TestBlockedSameBits(t *testing.T) {
	want := Sequential(300, 10)
	got, compute := Blocked(300, 10, 8)
	compute()
	if !sameBits(got, want) {
		t.Fatal("other bits")
	}
}
