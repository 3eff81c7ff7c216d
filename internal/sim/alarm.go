package sim

import (
	"math"
	"time"
)

// alarm calls one function at one instant, which may be put off or brought
// forward any number of times. Most alarms of a run are put off before they
// ring (a pilot waits for an answer, and it comes). Putting off costs no
// event: the one that was asked for before finds that it is too early, and asks
// again.
type alarm struct {
	engine *engine
	do     func()
	due    time.Duration // when do is to be called; never: not at all
	asked  time.Duration // when the engine calls look next; never: not at all
	look   func()        // made when it is needed first
}

// never is an instant that does not come.
const never = time.Duration(math.MaxInt64)

// newAlarm returns an alarm that is silent. Once it was set it may not be
// copied.
func newAlarm(e *engine, do func()) alarm {
	return alarm{engine: e, do: do, due: never, asked: never}
}

// set has do called at an instant, and not at that which was set before.
func (a *alarm) set(at time.Duration) {
	a.due = max(at, a.engine.now)
	if a.due < a.asked {
		a.ask()
	}
}

// setAt has do called at a time as the cores tell it, or not at all where it is zero.
func (a *alarm) setAt(t time.Time) {
	if t.IsZero() {
		a.stop()
		return
	}
	a.set(t.Sub(epoch))
}

// stop takes back what was set.
func (a *alarm) stop() { a.due = never }

func (a *alarm) ask() {
	if a.look == nil {
		a.look = a.ring
	}
	a.asked = a.due
	a.engine.at(a.due, a.look)
}

// ring is called at an instant that was asked for. If a nearer one was asked
// for since, this is not the one that counts.
func (a *alarm) ring() {
	if a.asked != a.engine.now {
		return
	}
	a.asked = never
	switch {
	case a.due == a.engine.now:
		a.stop()
		a.do()
	case a.due != never:
		a.ask()
	}
}
