package sched

import (
	"math/bits"
	"time"
)

// Strategy restricts how the events of a kind are detected.
type Strategy int

const (
	// Adaptive leaves the choice to the scheduler, which makes it from how often
	// events of the kind have come, how long they were waited for and what its
	// polls have cost.
	Adaptive Strategy = iota
	// PollOnly never blocks a thread, unless the kind cannot be polled.
	PollOnly
	// BlockOnly polls only to arm, unless the kind cannot block.
	BlockOnly
)

const (
	// blockCost is about what it takes to block a thread and to wake it.
	blockCost = 10 * time.Microsecond
	// maxSpin bounds the polling before a block.
	maxSpin = 64 * time.Microsecond
	// spinPolls bounds it where time stands still, as in a synctest bubble.
	spinPolls = 4096
	// learned is the number of events before which history is not trusted.
	learned = 16
	// memory is the number of events after which history counts half.
	memory = 1024
	// vainTriggers is the share of triggers in vain above which a kind that can also block does so.
	vainTriggers = 0.75
)

// adaptation is what a source has learnt about its events. It is guarded by
// source.calls.
type adaptation struct {
	waits   [16]uint32 // by the power of two of microseconds from request to event
	events  uint32
	last    time.Time     // last event
	between time.Duration // mean time between events, the later ones counting more
	poll    time.Duration // mean cost of a poll
	free    float64       // share of polls at checkpoints or on idle processors
	polls   bool          // the present choice
	vain    float64       // share of triggers after which a poll found nothing, the later ones counting more
	blocked uint32        // events since triggers were found to be in vain
}

// ended notes an event.
func (a *adaptation) ended(e *entry) {
	if e.fail != nil {
		return
	}
	a.blocked++
	if !a.last.IsZero() {
		a.between += (e.ended.Sub(a.last) - a.between) / 8
	}
	a.last = e.ended
	wait := bits.Len64(uint64(max(0, e.ended.Sub(e.born)) / time.Microsecond))
	a.waits[min(wait, len(a.waits)-1)]++
	if a.events++; a.events >= memory {
		a.events = 0
		for i := range a.waits {
			a.waits[i] /= 2
			a.events += a.waits[i]
		}
	}
}

// polledFor notes what a poll has cost, and whether it delayed any computing.
func (a *adaptation) polledFor(d time.Duration, free bool) {
	a.poll += (d - a.poll) / 8
	share := 0.0
	if free {
		share = 1
	}
	a.free += (share - a.free) / 8
}

// triggered notes whether a poll after a trigger has found an event.
func (a *adaptation) triggered(found bool) {
	share := 1.0
	if found {
		share = 0
	}
	a.vain += (share - a.vain) / learned
	a.blocked = 0
}

// trustsTriggers reports whether triggers tell of events rather than of nothing. After a while without
// listening it gives them another try.
func (a *adaptation) trustsTriggers() bool {
	if a.vain > vainTriggers && a.blocked >= memory {
		a.vain = vainTriggers
	}
	return a.vain <= vainTriggers
}

// prefersPolling compares the processor time that polling and blocking take. It
// changes its mind only for half the cost. Before there is a history, and when
// events should be seen as soon as possible, it prefers blocking.
func (a *adaptation) prefersPolling(h *hooks, now time.Time) bool {
	if h.reaction <= 0 || a.events < learned {
		a.polls = false
		return false
	}
	between := max(a.between, now.Sub(a.last), time.Microsecond)
	wake := time.Duration((1 - a.free) * float64(blockCost))
	polling := float64(a.poll+wake) / float64(min(h.interval, h.reaction))
	blocking := float64(blockCost) / float64(between)
	if a.polls {
		polling /= 2
	} else {
		polling *= 2
	}
	a.polls = polling < blocking
	return a.polls
}

// spin is how long to poll before a block so that both together cost least, by
// the waits there have been: those that end during the polling cost their
// length, the others all of it and a block. (Langendoen, Romein, Bhoedjang, Bal,
// "Integrating polling, interrupts, and thread management", 1996, the paper's
// future work.)
func (a *adaptation) spin() time.Duration {
	if a.events < learned {
		return 0
	}
	total := uint64(0)
	for _, n := range a.waits {
		total += uint64(n)
	}
	best, least := time.Duration(0), total*uint64(blockCost)
	caught, spent := uint64(0), uint64(0)
	for i, n := range a.waits {
		limit := time.Microsecond << i
		if limit > maxSpin {
			break
		}
		caught += uint64(n)
		spent += uint64(n) * uint64(limit)
		if cost := spent + (total-caught)*uint64(limit+blockCost); cost < least {
			best, least = limit, cost
		}
	}
	return best
}

// wantsBlock reports whether a thread should block for the source.
func (src *source) wantsBlock() bool {
	switch {
	case src.poll == nil:
		return src.canLead() || src.each
	case !src.canLead() && !src.each:
		return false
	case src.strategy == Adaptive:
		return !src.adapt.prefersPolling(&src.hooks, time.Now())
	}
	return src.strategy == BlockOnly
}

// canLead reports whether a leader can block for the whole group.
func (src *source) canLead() bool { return src.blocking.block != nil || src.listening.block != nil }

// prefersListening chooses between the ways to block that a kind has: its trigger holds no thread.
func (src *source) prefersListening() bool {
	return src.listening.block != nil && src.adapt.trustsTriggers()
}

// choose sets the way in which the leader blocks next. calls is held, and it does not block.
func (src *source) choose() {
	src.listens = src.spare || src.prefersListening() || src.blocking.block == nil
	if src.way = src.blocking; src.listens {
		src.way = src.listening
	}
}

// spin polls for a short time after a request has come, if experience says that
// the event is about to come too and there is a processor to spare. It reports
// whether a request ended. calls is held, but not all the time.
func (src *source) spin() bool {
	if !src.fresh || src.poll == nil || src.strategy != Adaptive {
		return false
	}
	src.fresh = false
	limit := src.adapt.spin()
	if limit == 0 || !src.s.slots.idle() {
		return false
	}
	before := src.total.Load()
	start := time.Now()
	for n := 0; n < spinPolls && time.Since(start) < limit && src.total.Load() == before; n++ {
		if src.pollOnce(true) {
			return true
		}
		src.pass()
	}
	return src.total.Load() != before
}
