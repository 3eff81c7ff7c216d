package orwl

import (
	"context"

	"fairway/internal/fifo"
)

// insertRanked is the general way: for traces, latches, other processes and
// refusals.
func (l *Location) insertRanked(h *Handle, m Mode, rank int) error {
	var wake wakeList
	l.lock()
	err := l.insertLocked(h, m, rank, &wake)
	if err == nil {
		l.unlatchCompleteLocked(&wake)
	}
	l.mu.Unlock()
	wake.up()
	return err
}

func (l *Location) insertLocked(h *Handle, m Mode, rank int, wake *wakeList) error {
	err := l.admit(0)
	if h.busy() {
		err = ErrBusy
	}
	if err != nil {
		return l.refuse(err)
	}
	l.placeLocked(h, m, rank, wake)
	return nil
}

// admit says whether the location takes one more request beyond those that stand
// there and the number that is about to come.
func (l *Location) admit(arriving int) error {
	standing := l.queue.Len() + arriving
	if l.latch != nil {
		standing += len(l.latch.postponed)
	}
	switch {
	case l.err != nil:
		return l.err
	case standing >= l.limit:
		return ErrFull
	}
	return nil
}

// placeLocked puts h, which was admitted, at the end of the queue or behind the latch. The
// rank counts only before the start. Where the task is in another process and the
// request is granted at once, that is told by wake.
func (l *Location) placeLocked(h *Handle, m Mode, rank int, wake *wakeList) {
	h.res, h.req.Owner, h.mode, h.traced = l, h, m, nil
	l.calm = 0
	if l.trace != nil {
		l.trace.requested(h, l.name, m)
	}
	switch {
	case l.latch != nil:
		h.awaits()
		l.latch.postponed = append(l.latch.postponed, Posting{handle: h, mode: m, Rank: rank})
	case l.queue.Insert(&h.req, m):
		h.state = held
		l.granted(h, nil)
		if h.served != nil {
			wake.add(h)
		}
	default:
		h.awaits()
	}
}

var nobody Handle

// granted records a grant; by is whose release it follows, if any.
func (l *Location) granted(h, by *Handle) {
	l.generation++
	h.generation = l.generation
	if by == nil {
		by = &nobody
	}
	if h.traced != nil {
		h.traced.grant(by.Name)
	}
	if h.served != nil {
		h.served.by = by.Name
	}
}

// cycleWatched is the general way of cycle. It unlocks the location.
func (l *Location) cycleWatched(cur, next *Handle) error {
	var wake wakeList
	err := l.insertLocked(next, cur.mode, 0, &wake)
	l.releaseLocked(cur, &wake)
	l.mu.Unlock()
	wake.up()
	return err
}

func (l *Location) releaseLocked(h *Handle, wake *wakeList) {
	h.traced.end()
	h.state = idle
	l.grantLocked(l.queue.Release(&h.req), h, wake)
}

// endMappings ends the mappings of h and, where they could change the data, counts the
// new version. Its task calls it while it has the lock still.
func (l *Location) endMappings(h *Handle) (wrote bool) {
	wrote = h.wrote
	h.mapped, h.wrote = false, false
	if l.memory.File != nil {
		unpin(h)
	}
	if len(h.views) > 0 {
		retireViews(h)
	}
	if wrote {
		l.version.Add(1)
	}
	return wrote
}

// note keeps what changed in the version that h made. Where a handle releases by the
// word there is no journal.
func (l *Location) note(h *Handle) {
	switch {
	case l.journal == nil:
	case h.served != nil && h.served.pieces != nil:
		l.journal.Wrote(l.memory.Bytes, h.served.pieces, l.version.Load())
	default:
		l.journal.Commit(l.memory.Bytes, l.version.Load())
	}
}

// grantLocked marks the requests from first on as granted and adds those whose tasks
// are to be told.
func (l *Location) grantLocked(first *fifo.Request[*Handle], by *Handle, wake *wakeList) {
	for r := first; r != nil; r = r.NextGranted() {
		l.grantOne(r.Owner, by, wake)
	}
}

func (l *Location) grantOne(h, by *Handle, wake *wakeList) {
	l.granted(h, by)
	if h.state == waiting {
		wake.add(h)
	}
	h.state = held
}

func (l *Location) withdraw(h *Handle) bool {
	l.mu.Lock()
	if h.state != waiting {
		l.mu.Unlock()
		return false
	}
	var wake wakeList
	l.takeOutLocked(h, &wake)
	l.mu.Unlock()
	wake.up()
	return true
}

// holds reports whether h, which belongs to another process, has the lock.
func (l *Location) holds(h *Handle) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.state == held
}

// takeOutLocked removes the request of h from the queue or from those
// postponed.
func (l *Location) takeOutLocked(h *Handle, wake *wakeList) {
	h.traced.end()
	h.state = idle
	if !h.req.Queued() {
		l.latch.forget(h)
		return
	}
	l.grantLocked(l.queue.Cancel(&h.req), h, wake)
}

func (l *Location) park(ctx context.Context, h *Handle) error { return park(ctx, h.token) }

func (l *Location) polled(*Handle) {}
