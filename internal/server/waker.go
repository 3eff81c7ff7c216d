package server

import (
	"context"
	"sync"
	"time"

	"fairway/sched"
)

// waker tells the loop when dispatch or flow wants a Tick.
type waker struct {
	fired chan struct{}
	sched *sched.Scheduler

	wanted [3]time.Time // by dispatch, by flow and for the end; zero: no wish
	armed  time.Time    // when the goroutine that waits will fire
	cancel context.CancelFunc
	group  sync.WaitGroup
}

func newWaker(s *sched.Scheduler) *waker {
	return &waker{fired: make(chan struct{}, 1), sched: s, cancel: func() {}}
}

func (w *waker) dispatch(at time.Time) { w.want(0, at) }
func (w *waker) flow(at time.Time)     { w.want(1, at) }
func (w *waker) end(at time.Time)      { w.want(2, at) }

// want takes note of a wish, which replaces the earlier one. A timer that is
// set too early is left alone: the Tick does no harm, and most wishes move
// later all the time.
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
		if w.sched.WaitUntil(ctx, at) != nil {
			return
		}
		select {
		case w.fired <- struct{}{}:
		default:
		}
	})
}

// reset is called when it has fired, before the Tick, whose effects renew the
// wishes.
func (w *waker) reset() {
	w.cancel()
	w.armed = time.Time{}
	for who, at := range w.wanted {
		if at.After(time.Now()) {
			w.want(who, at)
		}
	}
}

func (w *waker) stop() {
	w.cancel()
	w.group.Wait()
}
