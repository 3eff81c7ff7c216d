// Package rows holds the TaskQueue's data on millions of jobs and files: tables
// whose rows have numbers of 32 bits, and sets, heaps, queues and an index of
// names over such numbers. So a queue of a million jobs is a few thousand objects
// for the garbage collector, an index of it has no pointers, and a read brings
// little into the processor's cache that nobody asked for.
//
// The package has no goroutine, no clock and no I/O. Nothing in it is safe for
// concurrent use.
package rows

import "slices"

// blockLen is a power of two, and so large that a block begins a page, and with
// it a line of the processor's cache.
const blockLen = 512

// Table is a list of rows that never move. Its zero value is empty and ready.
type Table[T any] struct {
	blocks  []*[blockLen]T
	dropped []uint16 // rows of each block
	n       uint32
}

// Len returns the number of rows; they are numbered from 0.
func (t *Table[T]) Len() uint32 { return t.n }

// Add appends a zero row and returns it. Its number is what Len was before.
func (t *Table[T]) Add() *T {
	if t.n%blockLen == 0 {
		t.blocks, t.dropped = append(t.blocks, new([blockLen]T)), append(t.dropped, 0)
	}
	t.n++
	return t.At(t.n - 1)
}

// At returns a row. It panics, or returns one that is yet to be added, when
// the number is not below Len.
func (t *Table[T]) At(row uint32) *T { return &t.blocks[row/blockLen][row%blockLen] }

// Drop forgets n rows from one on, each once. Their numbers are not given again. What
// they refer to is free at once, and their own memory when all rows about them were
// dropped. Rows that were dropped must not be asked for.
func (t *Table[T]) Drop(row, n uint32) {
	for ; n > 0; row, n = row+1, n-1 {
		i := row / blockLen
		var zero T
		*t.At(row) = zero
		if t.dropped[i]++; t.dropped[i] == blockLen {
			t.blocks[i] = nil
		}
	}
}

// All yields the rows in their order, none of which was dropped. Rows must not be added meanwhile.
func (t *Table[T]) All(yield func(*T) bool) {
	for i := range t.n {
		if !yield(t.At(i)) {
			return
		}
	}
}

// Slab hands out short lists of values, many from one allocation, which lives
// as long as one of them is in use. Its zero value is ready.
type Slab[T any] struct{ free []T }

// Take returns n zero values.
func (s *Slab[T]) Take(n int) []T {
	if n > len(s.free) {
		s.free = make([]T, max(n, blockLen))
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

// Set is a set of numbers, with one bit for each. Its zero value is empty.
type Set []uint64

// Grow makes room for the numbers below n.
func (s *Set) Grow(n uint32) {
	for uint32(len(*s))*64 < n {
		*s = append(*s, 0)
	}
}

// Add puts a number in. Like the other methods it panics when there is no room for
// the number.
func (s Set) Add(row uint32) { s[row/64] |= 1 << (row % 64) }

// Remove takes a number out.
func (s Set) Remove(row uint32) { s[row/64] &^= 1 << (row % 64) }

// Has reports whether a number is in.
func (s Set) Has(row uint32) bool { return s[row/64]&(1<<(row%64)) != 0 }

// Heap is a binary heap of numbers, the lowest first. Its zero value is empty.
type Heap []uint32

// Push adds a number.
func (h *Heap) Push(row uint32) {
	*h = append(*h, row)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[parent] <= s[i] {
			return
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
}

// Pop removes the lowest number. The heap must not be empty.
func (h *Heap) Pop() {
	s := *h
	last := len(s) - 1
	s[0] = s[last]
	*h = s[:last]
	(*h).down(0)
}

func (h Heap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// Retain drops the numbers that are not in live.
func (h *Heap) Retain(live Set) {
	s := *h
	n := slices.IndexFunc(s, func(row uint32) bool { return !live.Has(row) })
	if n < 0 {
		return
	}
	for _, row := range s[n:] {
		if live.Has(row) {
			s[n] = row
			n++
		}
	}
	s = s[:n]
	for i := n/2 - 1; i >= 0; i-- {
		s.down(i)
	}
	*h = s
}

// Queue is a list to which values are added behind and from which they are
// taken in front. Adding moves nothing, however long it is. Its zero value is empty
// and ready.
type Queue[T any] struct {
	blocks []*[blockLen]T
	first  int // index of the first value in the first block
	n      int
	spare  *[blockLen]T
}

// Len returns the number of values.
func (q *Queue[T]) Len() int { return q.n }

// Push adds a value behind.
func (q *Queue[T]) Push(v T) {
	at := q.first + q.n
	if at == len(q.blocks)*blockLen {
		q.blocks = append(q.blocks, q.block())
	}
	q.blocks[at/blockLen][at%blockLen] = v
	q.n++
}

func (q *Queue[T]) block() *[blockLen]T {
	if b := q.spare; b != nil {
		q.spare = nil
		return b
	}
	return new([blockLen]T)
}

// Front returns the first value. The queue must not be empty.
func (q *Queue[T]) Front() T { return q.blocks[0][q.first] }

// Pop removes the first value. The queue must not be empty.
func (q *Queue[T]) Pop() {
	var none T
	q.blocks[0][q.first] = none
	q.first++
	q.n--
	if q.first == blockLen {
		q.spare, q.blocks[0] = q.blocks[0], nil
		q.blocks, q.first = q.blocks[1:], 0
	}
}

// Clear removes all values.
func (q *Queue[T]) Clear() {
	for _, b := range q.blocks[:min(len(q.blocks), 1)] {
		clear(b[:])
	}
	q.blocks = q.blocks[:min(len(q.blocks), 1)]
	q.first, q.n = 0, 0
}

// All yields the values, first to last. The queue must not be changed meanwhile.
func (q *Queue[T]) All(yield func(T) bool) {
	for at := q.first; at < q.first+q.n; at++ {
		if !yield(q.blocks[at/blockLen][at%blockLen]) {
			return
		}
	}
}
