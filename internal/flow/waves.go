package flow

import "fairway/internal/dispatch/rows"

// rank is a number in a heap: the place of a step, or a wave.
type rank int

// Before is the order of a heap.
func (r rank) Before(other rank) bool { return r < other }

// openWaves counts what is still open in each wave.
type openWaves struct {
	count map[int]int
	order rows.Ordered[rank]
}

func (o *openWaves) add(wave int) {
	if o.count == nil {
		o.count = map[int]int{}
	}
	if o.count[wave]++; o.count[wave] == 1 {
		o.order.Push(rank(wave))
	}
}

func (o *openWaves) remove(wave int) {
	if o.count[wave]--; o.count[wave] == 0 {
		delete(o.count, wave)
	}
}

// closed is the last wave before which nothing is open.
func (o *openWaves) closed() int {
	for len(o.order) > 0 && o.count[int(o.order[0])] == 0 {
		o.order.Pop()
	}
	if len(o.order) == 0 {
		return forever
	}
	return int(o.order[0]) - 1
}
