package sched

import "time"

// lookEvery is about how often a task that checkpoints often looks at the clock.
const lookEvery = 50 * time.Microsecond

// maxStride bounds the checkpoints between two looks at the clock.
const maxStride = 1 << 16

// Checkpoint is where a task lets others go first: it pays for those that events
// have woken, gives way to tasks of higher priority, takes turns with equal
// ones that have used no more than it, and polls what is due to be polled. It
// costs a few nanoseconds when there is nothing to do. Only the task's own
// goroutine may call it, and it must hold no lock that other tasks want.
func (t *Task) Checkpoint() {
	if t.marks.Load() != 0 {
		t.attend()
	}
}

// attend is Checkpoint when there may be something to do.
func (t *Task) attend() {
	if t.blocks {
		return
	}
	wanted := t.marks.Load()&markYield != 0
	if t.credit--; t.credit > 0 && !wanted {
		return
	}
	now := time.Now()
	t.pace(now)
	took := now.Sub(t.started)
	if took >= longTurn {
		t.thread.mark()
	}
	at := t.s.since(now)
	t.s.poller.pollDue(at)
	if !wanted && at < t.turnAt.Load() {
		return
	}
	yields, next := t.s.slots.turn(t, at, t.thread.spent(took))
	if !yields {
		return
	}
	t.finishTurn(now)
	t.thread.react()
	if next != nil {
		next.granted <- struct{}{}
	}
	<-t.granted
	t.resume()
}

// pace sets the number of checkpoints until the next look at the clock from the
// time that the last ones took.
func (t *Task) pace(now time.Time) {
	took := now.Sub(t.looked)
	t.looked = now
	switch {
	case took < lookEvery/2:
		t.stride = min(2*t.stride, maxStride)
	case took > 2*lookEvery:
		t.stride = max(1, t.stride/4)
	}
	t.credit = t.stride
}
