package rows

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
