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
