package sim

import (
	"math"
	"time"

	"fairway/internal/sim/experiment"
)

// link is a line whose bandwidth all transfers under way share equally, each
// at most at the speed of one connection: a storage element, or the network
// between hosts.
//
// It keeps one number, the bytes that each transfer has got since the start;
// a transfer of n bytes that begins at v ends when it reaches v+n. So a
// change costs the logarithm of the number of transfers, not the number.
type link struct {
	engine    *engine
	bandwidth float64 // bytes per second for all together; 0: no limit
	each      float64 // bytes per second for one; 0: no limit
	served    float64
	since     time.Duration
	waiting   transferHeap
	asked     uint64
	end       alarm // of the transfer that is nearest to it
}

type transfer struct {
	until float64
	seq   uint64
	done  func()
}

func newLink(e *engine, bandwidth, each experiment.Size) *link {
	l := &link{engine: e, bandwidth: float64(bandwidth), each: float64(each)}
	l.end = newAlarm(e, l.finish)
	return l
}

func (l *link) rate() float64 {
	rate := math.Inf(1)
	if l.bandwidth > 0 {
		rate = l.bandwidth / float64(len(l.waiting))
	}
	if l.each > 0 {
		rate = min(rate, l.each)
	}
	return rate
}

// send calls done when size bytes have gone through.
func (l *link) send(size int64, done func()) {
	if size <= 0 || l.bandwidth == 0 && l.each == 0 {
		l.engine.after(0, done)
		return
	}
	if l.bandwidth == 0 {
		l.engine.after(seconds(float64(size)/l.each), done)
		return
	}
	l.catchUp()
	l.asked++
	l.waiting.push(transfer{l.served + float64(size), l.asked, done})
	l.plan()
}

// catchUp credits every transfer with what it got since the last change.
func (l *link) catchUp() {
	if len(l.waiting) > 0 {
		l.served += (l.engine.now - l.since).Seconds() * l.rate()
	} else {
		l.served = 0
	}
	l.since = l.engine.now
}

// plan asks for the end of the transfer that is nearest to it.
func (l *link) plan() {
	if len(l.waiting) == 0 {
		l.end.stop()
		return
	}
	left := max(l.waiting[0].until-l.served, 0)
	l.end.set(l.engine.now + seconds(left/l.rate()))
}

// finish ends the nearest transfer and whatever ends within a byte of it.
func (l *link) finish() {
	l.catchUp()
	var ended []func()
	for first := true; len(l.waiting) > 0 && (first || l.waiting[0].until <= l.served+1); first = false {
		ended = append(ended, l.waiting.pop().done)
	}
	l.plan()
	for _, done := range ended {
		done()
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(s * float64(time.Second)))
}

// transferHeap is a heap with the transfer that ends first at its root.
type transferHeap []transfer

func (h transferHeap) less(i, j int) bool {
	return h[i].until < h[j].until || h[i].until == h[j].until && h[i].seq < h[j].seq
}

func (h *transferHeap) push(t transfer) {
	*h = append(*h, t)
	for i := len(*h) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		(*h)[i], (*h)[(i-1)/2] = (*h)[(i-1)/2], (*h)[i]
	}
}

func (h *transferHeap) pop() transfer {
	old := *h
	top, last := old[0], len(old)-1
	old[0], old[last] = old[last], transfer{}
	*h = old[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return top
		}
		(*h)[i], (*h)[least] = (*h)[least], (*h)[i]
		i = least
	}
}
