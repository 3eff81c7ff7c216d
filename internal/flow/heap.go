package flow

import "container/heap"

// rankHeap gives back the smallest number first.
type rankHeap struct{ ranks ranks }

func (h *rankHeap) len() int   { return len(h.ranks) }
func (h *rankHeap) push(r int) { heap.Push(&h.ranks, r) }
func (h *rankHeap) pop() int   { return heap.Pop(&h.ranks).(int) }
func (h *rankHeap) least() int { return h.ranks[0] }

type ranks []int

func (r ranks) Len() int           { return len(r) }
func (r ranks) Less(i, j int) bool { return r[i] < r[j] }
func (r ranks) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ranks) Push(x any)        { *r = append(*r, x.(int)) }
func (r *ranks) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// openWaves counts what is still open in each wave.
type openWaves struct {
	count map[int]int
	order rankHeap
}

func (o *openWaves) add(wave int) {
	if o.count == nil {
		o.count = map[int]int{}
	}
	if o.count[wave]++; o.count[wave] == 1 {
		o.order.push(wave)
	}
}

func (o *openWaves) remove(wave int) {
	if o.count[wave]--; o.count[wave] == 0 {
		delete(o.count, wave)
	}
}

// closed is the last wave before which nothing is open.
func (o *openWaves) closed() int {
	for o.order.len() > 0 && o.count[o.order.least()] == 0 {
		o.order.pop()
	}
	if o.order.len() == 0 {
		return forever
	}
	return o.order.least() - 1
}
