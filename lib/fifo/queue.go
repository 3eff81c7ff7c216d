package fifo

// Mode says what a request wants to do with the resource.
type Mode uint8

const (
	// Read shares the resource with other reads of its group.
	Read Mode = iota
	// Write has the resource alone.
	Write
)

// String returns "read" or "write".
func (m Mode) String() string {
	if m == Write {
		return "write"
	}
	return "read"
}

type state uint8

const (
	idle state = iota
	queued
	granted
)

// Request is a place in a Queue. Its zero value is ready to be inserted, and
// it is so again once it was released or cancelled. It must not be copied
// while it is queued.
type Request[T any] struct {
	// Owner is what the request belongs to. The queue never looks at it.
	Owner T

	prev, next *Request[T]
	mode       Mode
	state      state
}

// Granted reports whether the request holds the resource.
func (r *Request[T]) Granted() bool { return r.state == granted }

// Queued reports whether the request stands in a queue, granted or not.
func (r *Request[T]) Queued() bool { return r.state != idle }

// Mode returns the mode of the last insertion.
func (r *Request[T]) Mode() Mode { return r.mode }

// Prev returns the request that stands before r, or nil.
func (r *Request[T]) Prev() *Request[T] { return r.prev }

// Next returns the request that stands behind r, or nil.
func (r *Request[T]) Next() *Request[T] { return r.next }

// NextGranted returns the next of the requests that one call of Release or
// Cancel granted, or nil after the last. It is valid until the next call on
// the queue.
func (r *Request[T]) NextGranted() *Request[T] {
	if n := r.next; n != nil && n.state == granted {
		return n
	}
	return nil
}

// Queue holds the requests on one resource. Its zero value is empty and ready.
type Queue[T any] struct {
	head, tail *Request[T]
	len        int
}

// Head returns the request at the head, which is granted, or nil.
func (q *Queue[T]) Head() *Request[T] { return q.head }

// Len returns the number of queued requests, granted ones included.
func (q *Queue[T]) Len() int { return q.len }

// Insert puts r at the tail and reports whether it is granted at once. It
// panics when r is queued already.
func (q *Queue[T]) Insert(r *Request[T], m Mode) bool {
	if r.state != idle {
		panic("fifo: Insert of a request that is queued")
	}
	r.mode, r.state = m, queued
	if r.joins(q.tail) {
		r.state = granted
	}
	r.prev = q.tail
	if q.tail == nil {
		q.head = r
	} else {
		q.tail.next = r
	}
	q.tail = r
	q.len++
	return r.state == granted
}

// joins reports whether r is granted when it stands right behind prev.
func (r *Request[T]) joins(prev *Request[T]) bool {
	return prev == nil || prev.state == granted && prev.mode == Read && r.mode == Read
}

// Release removes r, which must be granted; it panics otherwise. It returns
// the first request that this granted, or nil; NextGranted leads to the others.
func (q *Queue[T]) Release(r *Request[T]) *Request[T] {
	if r.state != granted {
		panic("fifo: Release of a request that is not granted")
	}
	return q.Cancel(r)
}

// Cycle does what Insert of next in the mode of cur followed by Release of cur
// does, and returns what Release returns, which may be next. It panics as
// these do. It is the step of a recurring task (section 2.0.1).
func (q *Queue[T]) Cycle(cur, next *Request[T]) *Request[T] {
	if cur.mode == Read || cur.state != granted || next.state != idle {
		wasGranted := q.Insert(next, cur.mode)
		first := q.Release(cur)
		if first == nil && wasGranted {
			return next
		}
		return first
	}
	// A granted write stands alone at the head.
	next.mode = Write
	cur.state = idle
	follower := cur.next
	if follower == nil {
		q.head, q.tail = next, next
		next.state = granted
		return next
	}
	cur.next = nil
	follower.prev = nil
	q.head = follower
	next.prev = q.tail
	q.tail.next = next
	q.tail = next
	next.state = queued
	follower.grantRun()
	return follower
}

// Cancel removes r wherever it stands, granted or not; it panics when r is not
// queued. It returns what Release returns.
func (q *Queue[T]) Cancel(r *Request[T]) *Request[T] {
	if r.state == idle {
		panic("fifo: Cancel of a request that is not queued")
	}
	prev, next := r.prev, r.next
	// What stands behind need not be looked at then: it may be far away in memory.
	grantsNone := r.mode == Read && r.state == granted && prev != nil
	if prev == nil {
		q.head = next
	} else {
		prev.next = next
	}
	if next == nil {
		q.tail = prev
	} else {
		next.prev = prev
	}
	r.prev, r.next, r.state = nil, nil, idle
	q.len--
	if grantsNone || next == nil || next.state == granted || !next.joins(prev) {
		return nil
	}
	next.grantRun()
	return next
}

// grantRun grants r and, where r is a read, the reads right behind it.
func (r *Request[T]) grantRun() {
	r.state = granted
	if r.mode == Write {
		return
	}
	for n := r.next; n != nil && n.mode == Read; n = n.next {
		n.state = granted
	}
}
