package sim

import "time"

// engine is a virtual clock with the events that are still to come. Events of
// the same instant happen in the order in which they were asked for.
type engine struct {
	now      time.Duration // since the start of the run
	asked    uint64
	happened uint64
	heap     []event
}

// event is one thing that will happen.
type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

func (e event) before(o event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// after asks for do in d from now; a negative d means now.
func (e *engine) after(d time.Duration, do func()) { e.at(e.now+max(d, 0), do) }

// at asks for do at an instant, which may not lie in the past.
func (e *engine) at(t time.Duration, do func()) {
	e.asked++
	e.heap = append(e.heap, event{max(t, e.now), e.asked, do})
	i := len(e.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.heap[i].before(e.heap[up]) {
			return
		}
		e.heap[i], e.heap[up] = e.heap[up], e.heap[i]
		i = up
	}
}

// step lets the next event happen. It says false if there is none.
func (e *engine) step() bool {
	if len(e.heap) == 0 {
		return false
	}
	next := e.heap[0]
	last := len(e.heap) - 1
	e.heap[0] = e.heap[last]
	e.heap[last] = event{}
	e.heap = e.heap[:last]
	e.sink()
	e.now = next.at
	e.happened++
	next.do()
	return true
}

func (e *engine) sink() {
	i := 0
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(e.heap); c++ {
			if e.heap[c].before(e.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		e.heap[i], e.heap[least] = e.heap[least], e.heap[i]
		i = least
	}
}

// epoch is the instant at which every run starts; no result depends on it.
var epoch = time.Date(2010, time.January, 1, 0, 0, 0, 0, time.UTC)

// instant is the virtual time as the core sees it.
func (e *engine) instant() time.Time { return epoch.Add(e.now) }
