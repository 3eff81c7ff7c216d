package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"fairway/examples/llk23/sweep"
)

// The order in which the kernel computes gives the bits of the sequential sweep, with blocks of any
// form and any number of buffers, without OpenCL.
func TestArithmeticOfTheKernel(t *testing.T) {
	for _, o := range []options{
		{n: 67, rows: 1, columns: 1, iterations: 3, buffers: []int{1, 2}},
		{n: 80, rows: 3, columns: 2, iterations: 4, buffers: []int{1, 2, 3, 7}},
		{n: 20, rows: 18, columns: 1, iterations: 3, buffers: []int{2}},
		{n: 20, rows: 1, columns: 18, iterations: 3, buffers: []int{3}},
	} {
		var said strings.Builder
		o.device, o.out = "go", &said
		if err := run(t.Context(), o); err != nil || !strings.Contains(said.String(), "the same bits") {
			t.Errorf("%+v: %v\n%s", o, err, said.String())
		}
	}
}

func TestBlocksThatAreNone(t *testing.T) {
	for _, o := range []options{{n: 4, rows: 3, columns: 1, iterations: 1}, {n: 9, rows: 1, columns: 1}} {
		o.device, o.out, o.buffers = "go", &strings.Builder{}, []int{1}
		if err := run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has no ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A device of OpenCL gives the bits of its emulation, block by block and all together.
func TestOpenCL(t *testing.T) {
	if os.Getenv("FAIRWAY_TEST_GPU") == "" {
		t.Skip("make test-gpu runs it")
	}
	for _, form := range [][2]int{{1, 1}, {lanes - 1, 5}, {lanes + 1, 3}, {3 * lanes, 100}} {
		t.Run(fmt.Sprint(form), func(t *testing.T) { sameBlock(t, form[0], form[1]) })
	}
	for _, o := range []options{
		{n: 200, rows: 3, columns: 4, iterations: 5, buffers: []int{1, 2, 3, 5}},
		{n: 514, rows: 4, columns: 4, iterations: 10, buffers: []int{1, 2, 3, 4}},
	} {
		o.out = t.Output()
		if err := run(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
}

func sameBlock(t *testing.T, rows, columns int) {
	t.Helper()
	whole := sweep.Matrix(max(rows, columns) + 2)
	field := whole.Data[:(rows+2)*(columns+2)]
	factors := whole.Factors[:rows*columns]
	var got [2][]float64
	card, err := openCard("", 1, 1, len(field))
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	for i, d := range []device{card, newEmulated(1, 1, len(field))} {
		got[i] = make([]float64, len(field))
		for _, err := range []error{
			d.Keep(0, factors), d.Load(0, field), d.Sweep(0, 0, rows, columns), d.Sweep(0, 0, rows, columns), d.Store(0, got[i]),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(got[0], got[1]) {
		t.Error("the device and its emulation differ")
	}
}
