package rows

// Ordered is a binary heap of values that know their order: the least is the first element.
// Its zero value is empty.
type Ordered[T interface{ Before(other T) bool }] []T

// Push adds a value.
func (h *Ordered[T]) Push(v T) {
	*h = append(*h, v)
	s := *h
	for at := len(s) - 1; at > 0 && s[at].Before(s[(at-1)/2]); at = (at - 1) / 2 {
		s[at], s[(at-1)/2] = s[(at-1)/2], s[at]
	}
}

// Pop removes the least value and returns it. The heap must not be empty.
func (h *Ordered[T]) Pop() T {
	s := *h
	first, end := s[0], len(s)-1
	s[0] = s[end]
	clear(s[end:])
	*h = s[:end]
	h.Sink()
	return first
}

// Sink finds the place of the first element, which was replaced or became greater.
func (h Ordered[T]) Sink() {
	for at := 0; ; {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(h); child++ {
			if h[child].Before(h[least]) {
				least = child
			}
		}
		if least == at {
			return
		}
		h[at], h[least] = h[least], h[at]
		at = least
	}
}

// Ascending has values that know their order, and are mostly added in it: these wait in a queue, and
// only others in a heap. Its zero value is empty.
type Ascending[T interface{ Before(other T) bool }] struct {
	inOrder Queue[T]
	last    T // of these
	others  Ordered[T]
}

// Len returns the number of values.
func (a *Ascending[T]) Len() int { return a.inOrder.Len() + len(a.others) }

// Front returns the least value. There must be one.
func (a *Ascending[T]) Front() T {
	if a.othersFirst() {
		return a.others[0]
	}
	return a.inOrder.Front()
}

func (a *Ascending[T]) othersFirst() bool {
	return a.inOrder.Len() == 0 || len(a.others) > 0 && a.others[0].Before(a.inOrder.Front())
}

// Push adds a value.
func (a *Ascending[T]) Push(v T) {
	if a.inOrder.Len() > 0 && v.Before(a.last) {
		a.others.Push(v)
		return
	}
	a.inOrder.Push(v)
	a.last = v
}

// Pop removes the least value and returns it. There must be one.
func (a *Ascending[T]) Pop() T {
	if a.othersFirst() {
		return a.others.Pop()
	}
	v := a.inOrder.Front()
	a.inOrder.Pop()
	if a.inOrder.Len() == 0 {
		var none T
		a.last = none
	}
	return v
}
