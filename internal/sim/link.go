package sim

import (
	"math"
	"time"

	"fairway/internal/dispatch/rows"
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
	slowing   float64 // of processors, whose bytes are nanoseconds of computing: RecordedSite.Slowing; else 0
	served    float64
	since     time.Duration
	waiting   rows.Ordered[transfer]
	asked     uint64
	end       alarm // of the transfer that is nearest to it
}

type transfer struct {
	until float64
	seq   uint64
	done  func()
}

// Before reports whether a transfer ends first.
func (t transfer) Before(o transfer) bool {
	return t.until < o.until || t.until == o.until && t.seq < o.seq
}

func newLink(e *engine, bandwidth, each experiment.Size) *link {
	l := &link{engine: e, bandwidth: float64(bandwidth), each: float64(each)}
	l.end = newAlarm(e, l.finish)
	return l
}

func (l *link) rate() float64 {
	if l.slowing > 0 {
		return float64(time.Second) / (1 + l.slowing*float64(len(l.waiting)-1))
	}
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
	l.waiting.Push(transfer{l.served + float64(size), l.asked, done})
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
		ended = append(ended, l.waiting.Pop().done)
	}
	l.plan()
	for _, done := range ended {
		done()
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(s * float64(time.Second)))
}
