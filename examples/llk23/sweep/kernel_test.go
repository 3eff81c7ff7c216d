package sweep

import (
	"slices"
	"testing"
)

func newField(rows, columns int) *Field {
	f := &Field{Rows: rows, Columns: columns, Data: make([]float64, rows*columns), Factors: make([]Coefficients, rows*columns)}
	for i := range rows {
		for j := range columns {
			f.Data[i*columns+j], f.Factors[i*columns+j] = Initial(i, j)
		}
	}
	return f
}

func (f *Field) clone() *Field {
	g := *f
	g.Data = slices.Clone(f.Data)
	return &g
}

func TestRowsInFlightGiveTheSameBits(t *testing.T) {
	for rows := 3; rows < 13; rows++ {
		for columns := 3; columns < 14; columns++ {
			want := newField(rows, columns)
			got := want.clone()
			for range 3 {
				want.sweepNaive(1, rows-1, 1, columns-1)
				got.sweep(1, rows-1, 1, columns-1)
			}
			if !slices.Equal(got.Data, want.Data) {
				t.Fatalf("%d rows of %d columns differ", rows, columns)
			}
		}
	}
}

func BenchmarkNaive(b *testing.B) { benchmarkField(b, (*Field).sweepNaive, 300) }
func BenchmarkSweep(b *testing.B) { benchmarkField(b, (*Field).sweep, 300) }

func benchmarkField(b *testing.B, sweep func(f *Field, top, bottom, left, right int), n int) {
	f := newField(n, n)
	for b.Loop() {
		sweep(f, 1, n-1, 1, n-1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64((n-2)*(n-2)), "ns/element")
}
