package sched

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// hooks are the callbacks and properties of a Kind without its types.
type hooks struct {
	name       string
	poll       func()
	arm        func() bool
	block      func(limit time.Duration)
	unblock    func()
	concurrent bool
	each       bool // BlockEach instead of Block
	interval   time.Duration
	eager      time.Duration // 0: never polled without a pause
	reaction   time.Duration
	priority   int
	strategy   Strategy
	syscalls   func() uint64
	add        func(owner any, e *entry)
	remove     func(e *entry)
	everybody  func(yield func(*entry) bool)
}

// source detects the events of one kind. How it loses none stands in leader.go.
//
// Lock order: source.calls, then poller.mu or pool.mu; source.endMu last.
// Requests end in two steps, so that Done may be called from anywhere, callbacks
// included: end notes the entry, and whoever holds calls (or gets it at once)
// takes it out of the group and wakes its waiter before letting go.
type source struct {
	hooks
	s     *Scheduler
	stats *stats
	adapt adaptation

	// A request is in the group (members counts those), in joining, or taken out for good. joining
	// is empty unless an exclusive Block runs. Whoever holds calls owns all of this: the leader,
	// the poller, or a waiter that joins or ends. It lasts as long as the kind.
	calls   sync.Mutex   // serializes callbacks, guards what follows
	members atomic.Int32 // entries that are grouped; changed under calls
	joining []*entry     // not yet grouped, since Block is running
	led     atomic.Bool  // a goroutine polls and blocks for all; changed under calls
	fresh   bool         // a request has come since the last spin
	blocked bool         // inside Block
	broken  error        // set by Close or a panic in a callback
	polled  time.Time    // last poll
	window  time.Time    // start of the time in which an event found now may have come

	// Requests that have ended and are not taken out yet, put down by anybody. Whoever holds calls
	// takes them out before letting go.
	endMu sync.Mutex
	ended []*entry
	some  atomic.Int32  // length of ended
	total atomic.Uint64 // entries that ever ended
	dead  atomic.Bool   // a callback panicked

	eagerUntil atomic.Int64 // polled without a pause on an idle machine, ns since the scheduler's epoch

	due atomic.Int64 // next poll by whoever has time, ns since the scheduler's epoch
}

func newSource(s *Scheduler, h hooks) *source {
	src := &source{hooks: h, s: s, stats: new(stats)}
	s.addSource(src)
	return src
}

// join makes e one of the waiting entries and sees to it that somebody looks for
// its event.
func (src *source) join(e *entry) error {
	src.calls.Lock()
	defer src.unlock()
	if src.broken != nil {
		return src.broken
	}
	if src.blocked && !src.concurrent {
		src.joining = append(src.joining, e)
		src.guard("Unblock", src.unblock)
		return nil
	}
	src.group(e)
	if src.blocked && src.arm != nil {
		// The poll before the block did not know e, whose event may be there.
		src.pollOnce(true)
	}
	src.detect(e)
	return nil
}

// group adds e; calls is held and Block is away or does not mind.
func (src *source) group(e *entry) {
	e.grouped = true
	src.fresh = true
	src.rouse(e.born)
	src.members.Add(1)
	src.guard("Group", func() { src.add(e.owner, e) })
}

// regroup adds what joined during Block.
func (src *source) regroup() {
	joining := src.joining
	src.joining = nil
	for _, e := range joining {
		src.group(e)
	}
}

// detect starts what the strategy wants for a source that has members.
func (src *source) detect(e *entry) {
	switch {
	case src.each: // by the waiter
	case src.block != nil && src.wantsBlock():
		if !src.elect(e) {
			src.startFollower()
		}
	case src.poll != nil:
		src.startPolling()
	}
}

// startPolling polls at once, as the event may be there already, and leaves the
// rest to the poller.
func (src *source) startPolling() {
	if src.members.Load() == 1 {
		src.pollOnce(true)
	}
	if src.members.Load() > 0 {
		src.s.poller.watch(src)
	}
}

// pollInstead has a source polled that could block for each request, if that is
// better or there is no other way.
func (src *source) pollInstead(must bool) bool {
	src.calls.Lock()
	defer src.unlock()
	if src.poll == nil || !must && src.wantsBlock() {
		return false
	}
	src.startPolling()
	return true
}

func (src *source) startFollower() {
	if src.led.Load() {
		return
	}
	started := src.s.pool.run(context.Background(), src.poll == nil, src.follow)
	src.led.Store(started)
	if !started {
		src.startPolling()
	}
}

// end notes that e has ended and takes it out, unless somebody else is at work
// on the source, who will.
func (src *source) end(e *entry) {
	e.ended = time.Now()
	src.endMu.Lock()
	src.ended = append(src.ended, e)
	src.total.Add(1)
	src.endMu.Unlock()
	src.some.Add(1)
	if src.calls.TryLock() {
		src.unlock()
	}
}

// unlock takes out what has ended and releases calls. The loop catches entries
// that ended between the last look and the release.
func (src *source) unlock() {
	for {
		done := src.takeOut()
		src.calls.Unlock()
		if !done || src.some.Add(0) == 0 || !src.calls.TryLock() {
			return
		}
	}
}

// takeOut removes ended entries from the group and wakes their waiters. While an
// exclusive Block runs it is asked to return, its leader does the rest, and
// takeOut reports false.
func (src *source) takeOut() bool {
	for src.some.Load() > 0 {
		if src.blocked && !src.concurrent {
			src.guard("Unblock", src.unblock)
			return false
		}
		src.endMu.Lock()
		ended := src.ended
		src.ended = nil
		src.endMu.Unlock()
		src.some.Add(-int32(len(ended)))
		for _, e := range ended {
			src.leave(e)
		}
	}
	return true
}

func (src *source) leave(e *entry) {
	if e.grouped {
		if src.members.Add(-1) == 0 {
			src.s.poller.deserted()
		}
		src.guard("Group", func() { src.remove(e) })
	} else {
		src.forget(e)
	}
	src.adapt.ended(e)
	src.rouse(e.ended)
	earliest := e.ended
	if !src.window.IsZero() {
		earliest = src.window
	}
	if earliest.Before(e.born) {
		earliest = e.born
	}
	src.stats.detected(e, earliest)
	e.left = true
	e.ready <- struct{}{}
	if e.leads && src.blocked && !e.byBlock {
		src.guard("Unblock", src.unblock)
	}
}

// forget takes an entry that ended before it was grouped off the joining ones.
func (src *source) forget(e *entry) {
	if i := slices.Index(src.joining, e); i >= 0 {
		src.joining = slices.Delete(src.joining, i, i+1)
	}
}

// pollOnce calls Poll and reports whether a request ended. calls is held. free
// says that the poll delays no computing.
func (src *source) pollOnce(free bool) bool {
	if src.poll == nil || src.members.Load() == 0 {
		return false
	}
	start := time.Now()
	src.window = src.polled
	src.guard("Poll", src.poll)
	src.polled = time.Now()
	src.due.Store(src.s.since(src.polled.Add(src.interval)))
	src.adapt.polledFor(src.polled.Sub(start), free)
	src.stats.polls.Add(1)
	hit := src.some.Load() > 0
	if hit {
		src.stats.hits.Add(1)
	}
	src.takeOut()
	src.window = time.Time{}
	return hit
}

// tryPoll polls unless somebody else is at work on the source.
func (src *source) tryPoll(free bool) {
	if !src.calls.TryLock() {
		return
	}
	if !src.blocked || src.concurrent {
		src.pollOnce(free)
	}
	if src.block != nil && src.members.Load() > 0 && src.strategy == Adaptive && src.wantsBlock() {
		src.startFollower()
	}
	src.unlock()
}

// guard calls a callback and turns its panic into the end of the kind's waits.
func (src *source) guard(callback string, call func()) {
	defer src.contain(callback)
	call()
}

// contain is deferred around callbacks.
func (src *source) contain(callback string) {
	if v := recover(); v != nil {
		src.panicked(callback, v)
	}
}

// panicked ends all waits of the source because of what a callback has passed to panic.
func (src *source) panicked(callback string, v any) error {
	err := &PanicError{Kind: src.name, Callback: callback, Value: v, Stack: debug.Stack()}
	if src.dead.CompareAndSwap(false, true) {
		src.s.pool.group.Go(func() { src.fail(err) })
	}
	return err
}

// fail ends all waits of the source, now and later.
func (src *source) fail(err error) {
	src.calls.Lock()
	defer src.unlock()
	if src.broken == nil {
		src.broken = err
	}
	if src.blocked {
		src.guard("Unblock", src.unblock)
	}
	for e := range src.everybody {
		e.abort(err)
	}
	for _, e := range src.joining {
		e.abort(err)
	}
}
