package dispatch

import (
	"container/heap"
	"time"
)

type timerKind uint8

const (
	pilotTimer timerKind = iota // its Sync was held long enough, or it is silent too long
	jobTimer                    // its backoff is over
	groupTimer                  // jobs of it need no longer wait for their site
	graceTimer
	monitorTimer
	keptTimer // a job need no longer be kept for a pilot
)

// timer fires at or after its instant. Whoever it is for looks whether there
// is still something to do.
type timer struct {
	at    instant
	seq   uint64 // of two timers of one instant the older goes first
	kind  timerKind
	pilot *pilot
	job   *job
	group *group
}

type timers struct {
	heap timerHeap
	seq  uint64
}

func (t *timers) add(x timer) {
	t.seq++
	x.seq = t.seq
	heap.Push(&t.heap, x)
}

func (t *timers) next() time.Time {
	if len(t.heap) == 0 {
		return time.Time{}
	}
	return t.heap[0].at.time()
}

func (c *Core) runTimers() {
	for len(c.timers.heap) > 0 && c.timers.heap[0].at <= c.now {
		t := heap.Pop(&c.timers.heap).(timer)
		switch t.kind {
		case pilotTimer:
			c.pilotTime(t.pilot)
		case jobTimer:
			c.queue.backoffOver(t.job)
		case groupTimer:
			c.placement.siteWaitOver(t.group)
		case graceTimer:
			c.endGrace()
		case monitorTimer:
			c.fleet.monitor.armed, c.fleet.monitor.changed = 0, true
		case keptTimer:
			c.placement.kept.armed, c.placement.kept.look = 0, true
		}
	}
}

// timerHeap implements heap.Interface.
type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for container/heap.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

// Pop is for container/heap.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = timer{}
	*h = (*h)[:last]
	return t
}
