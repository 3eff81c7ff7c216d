package sweep

import (
	"slices"
	"strconv"
	"testing"
)

func newField(rows, columns int) *Field {
	f := &Field{
		Columns: columns, Data: make([]float64, rows*columns), Stride: columns, Factors: newFactors(0, rows, columns).values,
	}
	for k := range f.Data {
		f.Data[k] = initialValue(k/columns, k%columns)
	}
	return f
}

func (f *Field) clone() *Field {
	g := *f
	g.Data = slices.Clone(f.Data)
	return &g
}

func TestSweepsInFlightGiveTheSameBits(t *testing.T) {
	for rows := 3; rows < 30; rows += 2 {
		for columns := 3; columns < 30; columns++ {
			for sweeps := 1; sweeps <= lanes; sweeps++ {
				want := newField(rows, columns)
				got := want.clone()
				f := flight{Field: got}
				for range sweeps {
					want.sweep(1, rows-1, 1, columns-1)
					f.add(part{1, rows - 1, 1, columns - 1})
				}
				f.run()
				if !slices.Equal(got.Data, want.Data) {
					t.Fatalf("%d sweeps of %d rows and %d columns differ", sweeps, rows, columns)
				}
			}
		}
	}
}

func BenchmarkOneSweep(b *testing.B) {
	f := newField(300, 300)
	for b.Loop() {
		f.sweep(1, 299, 1, 299)
	}
	perElement(b, 300, 1)
}

func BenchmarkBlocked(b *testing.B) {
	for _, n := range []int{300, 1000, 4000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			_, compute := Blocked(n, DefaultSweeps, DefaultSweeps)
			for b.Loop() {
				compute()
			}
			perElement(b, n, DefaultSweeps)
		})
	}
}

func perElement(b *testing.B, n, sweeps int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64((n-2)*(n-2)*sweeps), "ns/element")
}
