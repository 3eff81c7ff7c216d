package loop

import (
	"context"
	"sync"
	"time"

	"fairway/internal/server/state"
	"fairway/lib/sched"
)

// Who wants to be woken.
const (
	byDispatch = iota
	byFlow
	byLeaving
)

// waker tells the loop when dispatch or flow wants a Tick. It belongs to the loop;
// its goroutine touches fired only.
type waker struct {
	fired chan struct{}
	sched *sched.Scheduler

	wanted [3]time.Time // by whom; zero: not at all
	armed  time.Time    // when the goroutine that waits will fire; zero: there is none
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// want replaces the time that somebody wanted before. A timer that is set too early
// is left alone: the Tick does no harm, and most times move later all the time.
func (w *waker) want(who int, at time.Time) {
	w.wanted[who] = at
	if !at.IsZero() && (w.armed.IsZero() || at.Before(w.armed)) {
		w.arm(at)
	}
}

func (w *waker) arm(at time.Time) {
	w.cancel()
	ctx, cancel := context.WithCancel(context.Background())
	w.armed, w.cancel = at, cancel
	w.group.Go(func() {
		if w.sched.Sleep(ctx, state.Until(at)) != nil {
			return
		}
		select {
		case w.fired <- struct{}{}:
		default:
		}
	})
}

// reset is called when it has fired, before the Tick, whose effects say when the next
// one is wanted.
func (w *waker) reset() {
	w.cancel()
	w.armed = time.Time{}
	for who, at := range w.wanted {
		if state.Until(at) > 0 {
			w.want(who, at)
		}
	}
}

func (w *waker) stop() {
	w.cancel()
	w.group.Wait()
}
