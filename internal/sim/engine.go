package sim

import "time"

// engine is a virtual clock with the events that are still to come. Events of
// the same instant happen in the order in which they were asked for. It lives as
// long as its run, whose one goroutine owns it: events are called by step, and may
// ask for others.
//
// now never goes back, and no event in the heap is before it. Of all that were
// asked for, those that have not happened are in the heap.
type engine struct {
	now      time.Duration // since the start of the run
	asked    uint64        // the number of the last event, which orders those of one instant
	happened uint64
	heap     []event // each before its fan children
}

// fan is how many children an event has in the heap: four stand in two lines of
// the processor's cache, and make the heap half as deep as two do.
const fan = 4

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
	next := event{max(t, e.now), e.asked, do}
	e.heap = append(e.heap, next)
	i := len(e.heap) - 1
	for i > 0 {
		up := (i - 1) / fan
		if !next.before(e.heap[up]) {
			break
		}
		e.heap[i] = e.heap[up]
		i = up
	}
	e.heap[i] = next
}

// step lets the next event happen. It reports whether there was one.
func (e *engine) step() bool {
	if len(e.heap) == 0 {
		return false
	}
	next := e.heap[0]
	e.takeFirst()
	e.now = next.at
	e.happened++
	next.do()
	return true
}

// takeFirst fills the place of the first event: the last one sinks from there.
func (e *engine) takeFirst() {
	end := len(e.heap) - 1
	last := e.heap[end]
	e.heap[end] = event{}
	e.heap = e.heap[:end]
	if end == 0 {
		return
	}
	i := 0
	for {
		least, first := -1, fan*i+1
		for c := first; c < min(first+fan, end); c++ {
			if least < 0 || e.heap[c].before(e.heap[least]) {
				least = c
			}
		}
		if least < 0 || !e.heap[least].before(last) {
			break
		}
		e.heap[i] = e.heap[least]
		i = least
	}
	e.heap[i] = last
}

// epoch is the instant at which every run starts; no result depends on it.
var epoch = time.Date(2010, time.January, 1, 0, 0, 0, 0, time.UTC)

// instant is the virtual time as the core sees it.
func (e *engine) instant() time.Time { return epoch.Add(e.now) }
