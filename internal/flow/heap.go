package flow

// heapOf has the least of its items first. Its zero value is empty.
type heapOf[T ordered[T]] struct{ items []T }

type ordered[T any] interface{ before(other T) bool }

func (h *heapOf[T]) len() int { return len(h.items) }

// least is the first item. The heap must not be empty.
func (h *heapOf[T]) least() *T { return &h.items[0] }

func (h *heapOf[T]) push(item T) {
	h.items = append(h.items, item)
	at := len(h.items) - 1
	for at > 0 && h.items[at].before(h.items[(at-1)/2]) {
		up := (at - 1) / 2
		h.items[at], h.items[up] = h.items[up], h.items[at]
		at = up
	}
}

func (h *heapOf[T]) pop() T {
	first, end := h.items[0], len(h.items)-1
	h.items[0] = h.items[end]
	clear(h.items[end:])
	h.items = h.items[:end]
	h.sink()
	return first
}

// sink finds the place of the first item, which was replaced or became greater.
func (h *heapOf[T]) sink() {
	for at, end := 0, len(h.items); ; {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < end; child++ {
			if h.items[child].before(h.items[least]) {
				least = child
			}
		}
		if least == at {
			return
		}
		h.items[at], h.items[least] = h.items[least], h.items[at]
		at = least
	}
}

// rank is a number in a heap: the place of a step, or a wave.
type rank int

func (r rank) before(other rank) bool { return r < other }

// openWaves counts what is still open in each wave.
type openWaves struct {
	count map[int]int
	order heapOf[rank]
}

func (o *openWaves) add(wave int) {
	if o.count == nil {
		o.count = map[int]int{}
	}
	if o.count[wave]++; o.count[wave] == 1 {
		o.order.push(rank(wave))
	}
}

func (o *openWaves) remove(wave int) {
	if o.count[wave]--; o.count[wave] == 0 {
		delete(o.count, wave)
	}
}

// closed is the last wave before which nothing is open.
func (o *openWaves) closed() int {
	for o.order.len() > 0 && o.count[int(*o.order.least())] == 0 {
		o.order.pop()
	}
	if o.order.len() == 0 {
		return forever
	}
	return int(*o.order.least()) - 1
}
