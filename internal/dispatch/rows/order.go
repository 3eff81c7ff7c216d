package rows

import "slices"

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
// taken in front. Adding moves nothing, however long it is. What was taken is
// overwritten later, so T should have no pointers. Its zero value is empty and
// ready.
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
	q.first++
	q.n--
	if q.first == blockLen {
		q.spare, q.blocks[0] = q.blocks[0], nil
		q.blocks, q.first = q.blocks[1:], 0
	}
}

// Clear removes all values.
func (q *Queue[T]) Clear() {
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
