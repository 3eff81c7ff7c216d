package orwl

import (
	"cmp"
	"slices"
)

// latch keeps requests out of the queue: those behind an insertion that may be taken
// back yet, in their order; or the first ones of a location (StartWith), by rank. It
// opens when no request is missing and every insertion that it knows of is settled, so
// a request that is taken back never counts for a start.
type latch struct {
	missing   int           // first requests that the location waits for; 0 for an insertion
	unsettled int           // insertions that may be taken back yet
	open      chan struct{} // closed when the latch opens
	postponed []Posting
}

func newLatch() *latch { return &latch{open: make(chan struct{})} }

// starts reports whether the latch is for the start of a location, which waits for a number
// of requests.
func (a *latch) starts() bool { return a.missing > 0 }

func (a *latch) forget(h *Handle) {
	a.postponed = slices.DeleteFunc(a.postponed, func(p Posting) bool { return p.handle == h })
}

// holdLocked latches the location for an insertion, until letGo.
func (l *Location) holdLocked() *latch {
	if l.latch == nil {
		l.latch = newLatch()
	}
	l.latch.unsettled++
	return l.latch
}

// letGo ends what holdLocked began.
func (l *Location) letGo(a *latch) {
	l.mu.Lock()
	a.unsettled--
	var wake wakeList
	l.unlatchCompleteLocked(&wake)
	l.mu.Unlock()
	wake.up()
}

// unlatchCompleteLocked opens the latch when nothing is missing any more. The requests
// that the location has waited for come first, by rank.
func (l *Location) unlatchCompleteLocked(wake *wakeList) {
	a := l.latch
	if a == nil || a.unsettled > 0 || len(a.postponed) < a.missing {
		return
	}
	slices.SortStableFunc(a.postponed[:a.missing], func(p, q Posting) int { return cmp.Compare(p.Rank, q.Rank) })
	l.unlatchLocked(wake)
}

// unlatchLocked inserts what was postponed.
func (l *Location) unlatchLocked(wake *wakeList) {
	a := l.latch
	l.latch = nil
	close(a.open)
	for _, p := range a.postponed {
		if l.queue.Insert(&p.handle.req, p.mode) {
			l.grantOne(p.handle, nil, wake)
		}
	}
}
