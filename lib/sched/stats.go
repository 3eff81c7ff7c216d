package sched

import (
	"sync/atomic"
	"time"
)

// stats counts what happened to one kind.
type stats struct {
	polls     atomic.Uint64
	hits      atomic.Uint64 // polls that ended a request
	blocks    atomic.Uint64
	events    atomic.Uint64
	aborted   atomic.Uint64 // waits ended by ctx, Close or a panic
	detection histogram
	queueing  histogram
	running   histogram
}

// detected notes that a request ended; earliest is when its event may have come
// at the earliest.
func (st *stats) detected(e *entry, earliest time.Time) {
	if e.fail != nil {
		st.aborted.Add(1)
		return
	}
	st.events.Add(1)
	st.detection.observe(e.ended.Sub(earliest))
}

// queued notes that the waiter of e runs.
func (st *stats) queued(e *entry) {
	if e.fail == nil {
		st.queueing.observe(time.Since(e.ended))
	}
}

// ran notes how long a task computed after an event. Turns that no event began
// have no stats.
func (st *stats) ran(d time.Duration) {
	if st != nil {
		st.running.observe(d)
	}
}

func (src *source) counts() Counts {
	st := src.stats
	c := Counts{
		Polls: st.polls.Load(), Found: st.hits.Load(), Blocks: st.blocks.Load(),
		Events: st.events.Load(), Aborted: st.aborted.Load(),
	}
	if src.syscalls != nil {
		src.guard("Syscalls", func() { c.Syscalls = src.syscalls() })
	}
	return c
}
