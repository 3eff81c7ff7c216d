package sched

import (
	"slices"
	"sync"
	"time"
)

// Quantum is how long a task computes before a checkpoint lets an equal one
// that waits for a slot go first.
const Quantum = 10 * time.Millisecond

// Grace is how long a task that an event has woken runs over the number of slots
// before its own checkpoints pay the debt.
const Grace = 500 * time.Microsecond

// slots hands out the right to compute. Those who wait stand in one queue,
// ordered by priority and then by arrival; a slot that becomes free goes to the
// head of the queue under mu, so nobody can overtake.
type slots struct {
	mu      sync.Mutex
	total   int
	spare   int     // tasks allowed over total, for those that events have woken
	running []*Task // with a slot, including those over total
	queue   []*Task // without one
	clocked bool    // checkpoints must look at the clock, since sources are polled
}

// marks of a task, which a checkpoint looks at.
const (
	markClock uint32 = 1 << iota // see now and then what time it is
	markYield                    // a slot is wanted by somebody with a better right
)

// take gives t a slot or queues it. It reports whether t may run now; if not,
// t.granted receives when it may.
func (sl *slots) take(t *Task, woken bool) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	defer sl.mark()
	limit := sl.total
	if woken {
		limit += sl.spare
	}
	if len(sl.running) < limit && (woken || len(sl.queue) == 0) {
		sl.running = append(sl.running, t)
		t.fresh = woken
		return true
	}
	sl.enqueue(t, woken)
	return false
}

// enqueue puts t behind its equals, or before them if they owe it the slot.
func (sl *slots) enqueue(t *Task, first bool) {
	at := 0
	for at < len(sl.queue) {
		q := sl.queue[at].priority
		if q < t.priority || first && q == t.priority {
			break
		}
		at++
	}
	sl.queue = slices.Insert(sl.queue, at, t)
}

// leave takes t's slot away and gives it to the head of the queue.
func (sl *slots) leave(t *Task) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.drop(t)
	sl.grant()
	sl.mark()
}

func (sl *slots) drop(t *Task) {
	at := slices.Index(sl.running, t)
	sl.running = slices.Delete(sl.running, at, at+1)
}

// grant gives free slots to the head of the queue.
func (sl *slots) grant() {
	for len(sl.running) < sl.total && len(sl.queue) > 0 {
		sl.head().granted <- struct{}{}
	}
}

// head moves the first of the queue to the running ones.
func (sl *slots) head() *Task {
	t := sl.queue[0]
	sl.queue = slices.Delete(sl.queue, 0, 1)
	sl.running = append(sl.running, t)
	t.fresh = false
	return t
}

// abandon takes t off the queue. It reports false if t has been granted a slot
// in the meantime.
func (sl *slots) abandon(t *Task) bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	at := slices.Index(sl.queue, t)
	if at < 0 {
		return false
	}
	sl.queue = slices.Delete(sl.queue, at, at+1)
	sl.mark()
	return true
}

// turn decides at a checkpoint whether t gives its slot up, and queues it if so:
// to pay a debt, or to let somebody of higher priority, or after a quantum an
// equal, go first. The one who goes first has the slot when turn returns, but is
// for the caller to wake: just before it parks, so that the next task starts on
// the thread that becomes free and no other thread is woken for it.
func (sl *slots) turn(t *Task, ran time.Duration) (yields bool, next *Task) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	defer sl.mark()
	if ran >= Grace {
		t.fresh = false
	}
	switch {
	case len(sl.running) > sl.total:
		if t.fresh {
			return false, nil
		}
		sl.drop(t)
		sl.enqueue(t, true)
		return true, nil
	case len(sl.queue) == 0:
		return false, nil
	case sl.queue[0].priority > t.priority,
		sl.queue[0].priority == t.priority && ran >= Quantum:
		sl.drop(t)
		sl.enqueue(t, false)
		return true, sl.head()
	}
	return false, nil
}

// mark tells the running tasks what their checkpoints have to do.
func (sl *slots) mark() {
	over := len(sl.running) > sl.total
	for _, t := range sl.running {
		var m uint32
		switch {
		case over && !t.fresh, len(sl.queue) > 0 && sl.queue[0].priority > t.priority:
			m = markYield | markClock
		case over, sl.clocked, len(sl.queue) > 0 && sl.queue[0].priority == t.priority:
			m = markClock
		}
		t.marks.Store(m)
	}
}

// watchClock makes checkpoints look for polls that are due.
func (sl *slots) watchClock(on bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.clocked != on {
		sl.clocked = on
		sl.mark()
	}
}

// idle reports whether a slot is free, so that polling costs no computing.
func (sl *slots) idle() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return len(sl.running) == 0 || len(sl.running) < sl.total
}

// resize changes the number of slots. Tasks over it stop at checkpoints.
func (sl *slots) resize(total, spare int) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.total, sl.spare = total, spare
	sl.grant()
	sl.mark()
}

func (sl *slots) sizes() (total, running, queued int) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.total, len(sl.running), len(sl.queue)
}
