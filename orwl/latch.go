package orwl

import (
	"cmp"
	"math"
	"slices"
)

// latch keeps requests out of the queue: those behind an insertion that is not
// complete yet, in their order; or the first ones of a location (StartWith), by
// rank.
type latch struct {
	missing   int           // first requests that have yet to come; 0 for an insertion
	open      chan struct{} // closed when the latch opens
	postponed []Posting
}

func newLatch() *latch { return &latch{open: make(chan struct{})} }

// postponeLocked puts h behind the latch, and opens it when h is the last of
// those missing.
func (l *Location) postponeLocked(h *Handle, m Mode, rank int) {
	a := l.latch
	h.awaits()
	a.postponed = append(a.postponed, Posting{handle: h, mode: m, Rank: rank})
	if a.missing == 0 || len(a.postponed) < a.missing {
		return
	}
	slices.SortStableFunc(a.postponed, func(p, q Posting) int { return cmp.Compare(p.Rank, q.Rank) })
	go l.unlatchLocked().up() // not under the lock; it happens once in the life of a location
}

// untilGate is the number missing behind a latch that only a JointGate opens.
const untilGate = math.MaxInt

// counts reports whether the latch opens when a number of requests has come.
func (a *latch) counts() bool { return a.missing > 0 && a.missing < untilGate }

func (a *latch) forget(h *Handle) {
	a.postponed = slices.DeleteFunc(a.postponed, func(p Posting) bool { return p.handle == h })
}

// unlatchLocked inserts what was postponed.
func (l *Location) unlatchLocked() wakeList {
	a := l.latch
	l.latch = nil
	close(a.open)
	var wake wakeList
	for _, p := range a.postponed {
		if l.queue.Insert(&p.handle.req, p.mode) {
			l.grantOne(p.handle, nil, &wake)
		}
	}
	return wake
}
