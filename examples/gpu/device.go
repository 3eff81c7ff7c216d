package main

import "fairway/examples/llk23/sweep"

// lanes are the rows that a kernel does at once.
const lanes = 32

// device computes blocks in buffers of its own. Load, Sweep and Store may run at the same time, each
// once; nobody but the caller keeps two from using one buffer.
type device interface {
	// Name says which it is, for a person.
	Name() string
	// Keep brings the coefficients of the elements of a block, by number, where they stay.
	Keep(block int, factors []sweep.Coefficients) error
	// Load copies a block with what is around it into a buffer.
	Load(buffer int, field []float64) error
	// Sweep does one sweep over the block in a buffer, which has so many rows and columns.
	Sweep(buffer, block, rows, columns int) error
	// Store copies a buffer back.
	Store(buffer int, field []float64) error
	Close()
}

// emulated is a device in Go: kernel.cl without OpenCL, element by element in the same order.
type emulated struct {
	buffers [][]float64
	factors [][]sweep.Coefficients
}

func newEmulated(buffers, blocks, size int) *emulated {
	e := &emulated{buffers: make([][]float64, buffers), factors: make([][]sweep.Coefficients, blocks)}
	for i := range e.buffers {
		e.buffers[i] = make([]float64, size)
	}
	return e
}

func (e *emulated) Name() string { return "emulated by Go" }

func (e *emulated) Keep(block int, factors []sweep.Coefficients) error {
	e.factors[block] = factors
	return nil
}

func (e *emulated) Load(buffer int, field []float64) error {
	copy(e.buffers[buffer], field)
	return nil
}

func (e *emulated) Store(buffer int, field []float64) error {
	copy(field, e.buffers[buffer])
	return nil
}

func (e *emulated) Close() {}

func (e *emulated) Sweep(buffer, block, rows, columns int) error {
	field, stride := e.buffers[buffer], columns+2
	for top := 0; top < rows; top += lanes {
		for step := range columns + lanes - 1 {
			for lane := range min(lanes, rows-top) {
				row, column := top+lane, step-lane
				if column < 0 || column >= columns {
					continue
				}
				at, k := (row+1)*stride+column+1, &e.factors[block][row*columns+column]
				c := field[at]
				// The conversions keep Go from fusing, as FP_CONTRACT does in the kernel.
				q := float64(field[at-stride]*k.B) + float64(field[at-1]*k.V) + float64(field[at+1]*k.U) +
					float64(field[at+stride]*k.R) + k.Z - c
				field[at] = c + float64(0.175*q)
			}
		}
	}
	return nil
}
