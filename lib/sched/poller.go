package sched

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// poller polls the sources that nobody else has polled in time. It has a
// goroutine only while there is something to poll.
type poller struct {
	s *Scheduler

	mu      sync.Mutex
	watched []*source // by falling priority
	running bool
	poke    chan struct{} // cap 1; look again
	deep    atomic.Bool   // asleep for long
	napping atomic.Bool

	next atomic.Int64 // earliest due of the watched sources; changed under mu

	hurrying  atomic.Bool   // somebody polls without a pause
	allowance allowance     // of who hurries, as is lostUntil
	lostUntil int64         // nobody hurries beside tasks before
	changed   atomic.Uint64 // how often watched has grown

	newNapper func() (*napper, error)
	short     atomic.Pointer[napper] // nil: all sleeps are the timer's
}

// watch has src polled until it has no members. If src is eager, the caller calls await next,
// where hurryFor polls it or starts the poller.
func (v *poller) watch(src *source) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Contains(v.watched, src) {
		return
	}
	at, _ := slices.BinarySearchFunc(v.watched, src, func(a, b *source) int { return b.priority - a.priority })
	v.watched = slices.Insert(v.watched, at, src)
	v.changed.Add(1)
	v.next.Store(min(v.next.Load(), src.due.Load()))
	if src.eager == 0 {
		v.startLocked()
	}
}

// start has the poller look at what is watched, if there is anything.
func (v *poller) start() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.watched) > 0 {
		v.startLocked()
	}
}

func (v *poller) startLocked() {
	if v.running {
		v.wake()
		return
	}
	if v.running = v.s.pool.beside(v.serve); v.running {
		v.s.slots.watchClock(true, v.s.now())
	}
}

// serve sleeps until a poll is overdue, and ends when nothing is left to poll.
func (v *poller) serve() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	retired := false
	defer func() {
		if !retired { // a callback ends this goroutine
			v.succeed()
		}
	}()
	if short, err := v.newNapper(); err == nil {
		v.short.Store(short)
		defer short.close()
		defer v.short.CompareAndSwap(short, nil) // there may be another poller by then
	}
	for {
		sources := v.current()
		if len(sources) == 0 && v.retire() {
			retired = true
			return
		}
		if v.hurrying.CompareAndSwap(false, true) {
			v.hurry(func() bool { return isClosed(v.s.closing) })
		}
		v.sleep(timer, v.patience(sources))
		v.poll(sources, v.overdue, v.s.slots.idle())
	}
}

// succeed has another goroutine serve.
func (v *poller) succeed() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.running = false
	v.startLocked()
}

// patience is how long the poller may sleep before a poll is overdue. A waiter who hurries
// polls what is, and starts the poller in the end.
func (v *poller) patience(sources []*source) time.Duration {
	if v.hurrying.Load() {
		return linger
	}
	next := int64(math.MaxInt64)
	for _, src := range sources {
		next = min(next, v.overdue(src))
	}
	return time.Duration(next - v.s.since(time.Now()))
}

// overdue is when the poller polls src if nobody else does: at once while a slot
// is idle, as the polls of an idle processor are as free as those at checkpoints,
// and otherwise when tasks have had the time to come to a checkpoint.
func (v *poller) overdue(src *source) int64 {
	due := src.due.Load()
	switch {
	case v.s.slots.idle():
		return due
	case src.reaction > 0:
		return due + int64(src.reaction-src.interval)
	}
	return due + int64(src.interval/8)
}

// napLimit is below which a sleep is a nap, which is more exact.
const napLimit = 2 * time.Millisecond

func (v *poller) sleep(timer *time.Timer, d time.Duration) {
	if d <= 0 || d < napLimit && v.nap(d) {
		return
	}
	v.deep.Store(d > linger)
	defer v.deep.Store(false)
	timer.Reset(d)
	select {
	case <-timer.C:
	case <-v.poke:
	case <-v.s.closing:
	}
}

// nap sleeps for d unless it is woken, and reports whether it could. Whoever wakes
// it leaves a poke first and then cuts the nap short if there is one; so either
// the poke is seen here, or the timer that is cut short is the one set here.
func (v *poller) nap(d time.Duration) bool {
	short := v.short.Load()
	if short == nil {
		return false
	}
	v.napping.Store(true)
	defer v.napping.Store(false)
	if !short.set(d) {
		return false
	}
	select {
	case <-v.poke:
		return true
	default:
		return short.wait()
	}
}

// deserted tells the poller that a source has no members any more. It is left
// asleep if it will notice soon.
func (v *poller) deserted() {
	if v.deep.Load() {
		v.wake()
	}
}

func (v *poller) wake() {
	select {
	case v.poke <- struct{}{}:
	default:
	}
	if short := v.short.Load(); short != nil && v.napping.Load() {
		short.set(1)
	}
}

// pollDue polls what is due at now; whoever has processor time to spare calls it.
func (v *poller) pollDue(now int64) {
	if now < v.next.Load() {
		return
	}
	v.poll(v.current(), func(src *source) int64 { return src.due.Load() }, true)
}

// poll polls the sources whose time, by the given measure, has come.
func (v *poller) poll(sources []*source, when func(*source) int64, free bool) {
	now := v.s.since(time.Now())
	for _, src := range sources {
		if when(src) <= now {
			src.tryPoll(free)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	next := int64(math.MaxInt64)
	for _, src := range v.watched {
		next = min(next, src.due.Load())
	}
	v.next.Store(next)
}

// current drops the sources that need no polling and returns the others.
func (v *poller) current() []*source {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.watched = slices.DeleteFunc(v.watched, func(src *source) bool { return src.members.Load() == 0 || src.led.Load() })
	return slices.Clone(v.watched)
}

// retire ends the poller if there is nothing to poll.
func (v *poller) retire() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.watched) > 0 {
		return false
	}
	v.running = false
	v.next.Store(math.MaxInt64)
	v.s.slots.watchClock(false, v.s.now())
	return true
}
