package sched

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// hooks are the callbacks and properties of a Kind without its types.
type hooks struct {
	name      string
	poll      func()
	blocking  way    // by the callbacks of the kind
	listening way    // by its trigger
	each      bool   // BlockEach instead of Block
	slowBlock bool   // Block may take long: no waiter leads
	free      func() // frees what the kind holds, at its end; nil: nothing
	interval  time.Duration
	eager     time.Duration // 0: never polled without a pause
	reaction  time.Duration
	priority  int
	strategy  Strategy
	syscalls  func() uint64
	add       func(owner any, e *entry)
	remove    func(e *entry)
	everybody func(yield func(*entry) bool)
}

// way is how a leader blocks for the group. The zero way is none.
type way struct {
	arm        func() bool // nil: there is none
	block      func(limit time.Duration)
	unblock    func()
	concurrent bool // the group may change during block
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
	leading              // its state; led is read by others too
	members atomic.Int32 // entries that are grouped; changed under calls
	joining []*entry     // not yet grouped, since Block is running
	fresh   bool         // a request has come since the last spin
	broken  error        // set by breakUp
	polled  time.Time    // last poll
	window  time.Time    // start of the time in which an event found now may have come

	// Requests that have ended and are not taken out yet, put down by anybody. Whoever holds calls
	// takes them out before letting go.
	endMu sync.Mutex
	ended []*entry
	some  atomic.Int32  // length of ended
	total atomic.Uint64 // entries that ever ended

	// How the source ends: failed is put down by anybody, breakUp ends all waits because of it, and
	// rest comes when no callback runs any more.
	failed atomic.Pointer[error]
	mute   atomic.Bool   // a callback has not returned as it should, and none but Unblock is called again
	inside atomic.Int32  // calls of BlockEach
	rested chan struct{} // closed by rest
	gone   atomic.Bool   // its handle is closed

	eagerUntil atomic.Int64 // polled without a pause on an idle machine, ns since the scheduler's epoch

	due atomic.Int64 // next poll by whoever has time, ns since the scheduler's epoch
}

// leading is how a source is led.
type leading struct {
	led     atomic.Bool // a goroutine polls and blocks for all; changed under calls
	way                 // in which the leader blocks; changed between two blocks
	listens bool        // that way is the trigger
	spare   bool        // the leader has no thread of the pool, and so listens
	blocked bool        // inside Block
	limited bool        // that Block, to linger
	lonely  bool        // somebody will call lookForNobody
	asked   bool        // Unblock has been called for this Block
}

func newSource(s *Scheduler, h hooks) *source {
	src := &source{hooks: h, s: s, stats: new(stats), rested: make(chan struct{})}
	src.choose()
	if closed := s.addSource(src); closed {
		src.fail(ErrClosed)
	}
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
		src.endBlock()
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
	case src.wantsBlock():
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

// detectAsGroup has a source that could block for each request detect them together, by its trigger or
// by polling, if that is better or there is no other way.
func (src *source) detectAsGroup(must bool) bool {
	src.calls.Lock()
	defer src.unlock()
	blocks := src.wantsBlock()
	switch {
	case src.poll == nil || !must && blocks && !src.prefersListening():
		return false
	case blocks && src.listening.block != nil:
		src.startFollower()
	default:
		src.startPolling()
	}
	return true
}

// startFollower has a goroutine lead, on a thread of the pool or, where none is free, without one by
// listening; else the source is polled.
func (src *source) startFollower() {
	if src.led.Load() {
		return
	}
	started := !src.each && src.s.pool.run(context.Background(), src.poll == nil, src.follow)
	if !started && src.listening.block != nil {
		src.spare = src.s.pool.beside(src.follow)
		started = src.spare
	}
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
	for src.release() && src.some.Add(0) != 0 && src.calls.TryLock() {
	}
}

// release is one round of unlock. It reports false if the leader does the rest. Where a callback
// ends this goroutine, another one does.
func (src *source) release() (done bool) {
	returned := false
	defer func() {
		if !returned {
			defer func() { go src.settle() }()
		}
		src.calls.Unlock()
	}()
	if done = src.takeOut(); done && src.broken != nil {
		src.rest()
	}
	returned = true
	return done
}

// settle takes out what has ended.
func (src *source) settle() {
	src.calls.Lock()
	src.unlock()
}

// takeOut removes ended entries from the group and wakes their waiters. While an
// exclusive Block runs it is asked to return, its leader does the rest, and
// takeOut reports false.
func (src *source) takeOut() bool {
	for src.some.Load() > 0 {
		if src.broken == nil && src.over() {
			src.breakUp()
		}
		if src.blocked && !src.concurrent {
			src.endBlock()
			return false
		}
		src.endMu.Lock()
		ended := src.ended
		src.ended = nil
		src.endMu.Unlock()
		src.some.Add(-int32(len(ended)))
		src.leaveAll(ended)
	}
	return true
}

// leaveAll takes the ended ones out. Where a callback ends this goroutine, those that are left are
// for the next who takes out.
func (src *source) leaveAll(ended []*entry) {
	defer func() {
		if len(ended) > 0 {
			src.endMu.Lock()
			src.ended = append(src.ended, ended...)
			src.endMu.Unlock()
			src.some.Add(int32(len(ended)))
		}
	}()
	for len(ended) > 0 {
		e := ended[0]
		ended = ended[1:]
		src.leave(e)
	}
}

// endBlock asks the Block that runs to return. Once is enough, as Unblock sticks.
func (src *source) endBlock() {
	if !src.asked {
		src.asked = true
		src.guard("Unblock", src.unblock)
	}
}

func (src *source) leave(e *entry) {
	defer src.left(e)
	if e.grouped {
		if src.members.Add(-1) == 0 {
			src.s.poller.deserted()
			src.desert(e)
		}
		src.guard("Group", func() { src.remove(e) })
	} else {
		src.forget(e)
	}
}

// desert has a Block of another goroutine end a while after nobody waits any more: it keeps a thread of
// the pool. A waiter who comes back soon finds it there. calls is held.
func (src *source) desert(e *entry) {
	if src.blocked && !src.limited && !src.lonely && !e.leads {
		src.lonely = true
		time.AfterFunc(linger, src.lookForNobody)
	}
}

func (src *source) lookForNobody() {
	src.calls.Lock()
	defer src.unlock()
	src.lonely = false
	if src.blocked && !src.limited && src.members.Load() == 0 {
		src.endBlock()
	}
}

// left wakes the waiter of an entry that has been taken out.
func (src *source) left(e *entry) {
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
		src.endBlock()
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
	defer src.unlock()
	if !src.blocked || src.concurrent {
		src.pollOnce(free)
	}
	if src.canLead() && src.members.Load() > 0 && src.strategy == Adaptive && src.wantsBlock() {
		src.startFollower()
	}
}

// guard calls a callback and makes its panic, or its end of the goroutine, the end of the kind's
// waits. Afterwards nothing but Unblock is called any more.
func (src *source) guard(callback string, call func()) {
	if src.mute.Load() && callback != "Unblock" {
		return
	}
	returned := false
	defer src.contain(callback, &returned)
	call()
	returned = true
}

// contain is deferred around callbacks.
func (src *source) contain(callback string, returned *bool) {
	if *returned {
		return
	}
	src.mute.Store(true)
	if v := recover(); v != nil {
		src.fail(src.panicked(callback, v))
		return
	}
	src.fail(fmt.Errorf("callback %s of kind %s: %w", callback, src.name, ErrExited))
}

// panicked is the error for what a callback has passed to panic.
func (src *source) panicked(callback string, v any) error {
	return &PanicError{Kind: src.name, Callback: callback, Value: v, Stack: debug.Stack()}
}

// fail ends all waits of the source, now and later. If somebody is at work on it, that one does so
// before letting go; so callbacks may call this too. The first error counts.
func (src *source) fail(err error) {
	if !src.failed.CompareAndSwap(nil, &err) {
		return
	}
	src.some.Add(1) // for breakUp
	if src.calls.TryLock() {
		src.unlock()
	}
}

// over reports whether all waits of the source end, now and later.
func (src *source) over() bool { return src.failed.Load() != nil }

// breakUp ends all waits because of failed. calls is held.
func (src *source) breakUp() {
	src.broken = *src.failed.Load()
	src.some.Add(-1)
	for e := range src.everybody {
		e.abort(src.broken)
	}
	for _, e := range src.joining {
		e.abort(src.broken)
	}
	if src.blocked {
		src.asked = false // where Unblock itself has failed, it is tried once more
		src.endBlock()
	}
}

// rest frees what the kind holds when no callback of a broken source runs, nor will again. calls is
// held.
func (src *source) rest() {
	if src.blocked || src.members.Load() > 0 || len(src.joining) > 0 || src.inside.Load() > 0 || isClosed(src.rested) {
		return
	}
	if src.free != nil {
		src.free()
	}
	close(src.rested)
	if src.gone.Load() {
		src.s.removeSource(src)
	}
}

// close ends the source, and returns when no callback runs any more, unless the caller is one.
func (src *source) close() {
	src.gone.Store(true)
	src.fail(ErrClosed)
	if !fromCallback() {
		<-src.rested
	}
	if isClosed(src.rested) {
		src.s.removeSource(src)
	}
}

// callEach has BlockEach called, and counts the call.
func (src *source) callEach(call func()) {
	src.inside.Add(1)
	defer func() {
		src.inside.Add(-1)
		if src.over() {
			src.settle()
		}
	}()
	call()
}

// fromCallback reports whether a callback of a kind, of whatever scheduler, has called the caller.
func fromCallback() bool {
	var pcs [32]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return false
		}
		frames := runtime.CallersFrames(pcs[:n])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if slices.Contains(callers(), f.Function) {
				return true
			}
		}
	}
}

// callers are the names of the functions that call callbacks.
var callers = sync.OnceValue(func() (names []string) {
	for _, f := range []any{(*source).guard, (*source).callEach} {
		names = append(names, runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name())
	}
	return names
})
