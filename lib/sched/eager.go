package sched

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// DefaultEager is for how long a kind is polled without a pause where [Kind] names no other time
// and an Interval of at most [DefaultInterval].
const DefaultEager = 50 * time.Millisecond

// DefaultIdlePolling is the share of one processor that polling without a pause may take where
// Config names none.
const DefaultIdlePolling = 1.0

const (
	// pollingCredit bounds what polling without a pause may take at once after it has rested.
	pollingCredit = 10 * time.Millisecond
	// pollingRest is how much of it must be there before it begins again.
	pollingRest = time.Millisecond
	// stillPolls bounds the polls in a row where time stands still, as in a synctest bubble.
	stillPolls = 64
	// yieldEvery is how long who polls without a pause has its P before it lets others go first.
	// It can't do so after each poll, since the Go runtime wakes a further thread each time.
	yieldEvery = 100 * time.Microsecond
	// lostAfter is how long a poll takes at least if the system has given the processor to others
	// meanwhile, and lostRest how long tasks that compute then have theirs without competition.
	lostAfter = time.Millisecond
	lostRest  = 50 * time.Millisecond
)

// eagerness is for how long the kind is polled without a pause after a request or an event, while
// a slot is idle. Kinds that may block have no need of it.
func (k *Kind[Req, Res]) eagerness() time.Duration {
	blocks := k.Block != nil || k.BlockEach != nil
	switch {
	case k.Poll == nil || blocks && k.Strategy != PollOnly:
		return 0
	case k.Eager == 0 && k.Interval <= DefaultInterval:
		return DefaultEager
	}
	return max(0, k.Eager)
}

// rouse begins the time in which src is polled without a pause anew.
func (src *source) rouse(at time.Time) {
	if src.eager > 0 {
		src.eagerUntil.Store(src.s.since(at.Add(src.eager)))
	}
}

// allowance bounds the share of a processor that polling without a pause takes. It has no clock:
// now is the time since any epoch, and does not go back. Who hurries uses it.
type allowance struct {
	share   float64 // of one processor; at most 1, and none if not positive
	credit  time.Duration
	at      int64
	resting bool
}

// granted reports whether there may be another poll without a pause, after there has been one
// since the last call or not.
func (a *allowance) granted(now int64, polling bool) bool {
	passed := time.Duration(now - a.at)
	a.at = now
	a.credit += time.Duration(a.share * float64(passed))
	if polling {
		a.credit -= passed
	}
	a.credit = min(a.credit, pollingCredit)
	switch {
	case a.credit >= pollingRest:
		a.resting = false
	case a.credit < 0:
		a.resting = true
	}
	return a.share > 0 && !a.resting
}

// hurry polls without a pause until over, for as long as a slot is idle, a source wants it and the
// allowance lasts, and what is not eager whenever it is overdue. (Section 2.1 of the paper: "the
// scheduler can use the otherwise idle time to perform intensive polling".) Where tasks compute, an
// idle slot may stand for a processor that other programs have; then it rests. It reports whether it
// has polled. One goroutine at a time does so, a waiter or the poller's own, which has set
// hurrying.
func (v *poller) hurry(over func() bool) (polled bool) {
	defer v.hurrying.Store(false)
	if runtime.GOMAXPROCS(0) == 1 { // the runtime would look at the network once in 10 ms
		return false
	}
	sources, seen := v.current(), v.changed.Load()
	yielded, waiting := v.s.now(), int32(0)
	for still, last := 0, int64(-1); still < stillPolls && !over(); still++ {
		now := v.s.now()
		idle, computing := v.s.slots.free()
		if last >= 0 && now-last >= int64(lostAfter) {
			v.lostUntil = now + int64(lostRest)
		}
		if !idle || computing && now < v.lostUntil {
			break
		}
		if now != last {
			still, last = 0, now
		}
		if v.changed.Load() != seen {
			sources, seen = v.current(), v.changed.Load()
		}
		keen := func(src *source) bool { return now < src.eagerUntil.Load() && src.members.Load() > 0 }
		if !slices.ContainsFunc(sources, keen) || !v.allowance.granted(now, polled) {
			break
		}
		polled = true
		v.poll(sources, func(src *source) int64 {
			if keen(src) {
				return now
			}
			return v.overdue(src)
		}, true)
		before := waiting
		if waiting = membersOf(sources); waiting < before || now-yielded >= int64(yieldEvery) {
			runtime.Gosched() // to those whose events have come, for instance
			yielded = now
		}
	}
	return polled
}

func membersOf(sources []*source) (n int32) {
	for _, src := range sources {
		n += src.members.Load()
	}
	return n
}

// hurryFor has the waiter of e poll without a pause itself, since its event then finds it
// without a switch to another goroutine. The poller goes on with what is left: whoever finds
// that somebody else hurries has joined before, and so is seen here by that one.
func (v *poller) hurryFor(ctx context.Context, e *entry) {
	if !v.hurrying.CompareAndSwap(false, true) {
		return
	}
	defer func() {
		if len(v.current()) > 0 {
			v.start()
		}
	}()
	v.hurry(func() bool { return len(e.ready) > 0 || isClosed(ctx.Done()) })
}
