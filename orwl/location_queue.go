package orwl

import (
	"context"

	"fairway/internal/fifo"
)

// insertRanked is the general way: for traces, latches, other processes and
// refusals.
func (l *Location) insertRanked(h *Handle, m Mode, rank int) error {
	l.mu.Lock()
	err := l.insertLocked(h, m, rank)
	immediate := err == nil && h.unnoticed()
	l.mu.Unlock()
	if immediate {
		h.served.decided()
	}
	return err
}

// insertLocked puts h at the end of the queue, or behind the latch. The rank
// counts only before the start.
func (l *Location) insertLocked(h *Handle, m Mode, rank int) error {
	if err := l.admit(h); err != nil {
		return l.refuse(err)
	}
	h.res, h.req.Owner, h.mode = l, h, m
	if l.trace != nil {
		l.trace.requested(h, l.name, m)
	}
	if l.latch != nil {
		l.postponeLocked(h, m, rank)
		return nil
	}
	if l.queue.Insert(&h.req, m) {
		h.state = held
		l.granted(h, nil)
	} else {
		h.awaits()
	}
	return nil
}

func (l *Location) admit(h *Handle) error {
	switch {
	case h.state != idle:
		return ErrBusy
	case l.err != nil:
		return l.err
	case l.queue.Len() >= l.limit || l.latch != nil && len(l.latch.postponed) >= l.limit:
		return ErrFull
	}
	return nil
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
	err := l.insertLocked(next, cur.mode, 0)
	wake := l.releaseLocked(cur)
	immediate := err == nil && next.unnoticed()
	l.mu.Unlock()
	wake.up()
	if immediate {
		next.served.decided()
	}
	return err
}

func (l *Location) releaseLocked(h *Handle) wakeList {
	if h.mapped {
		l.unmap(h)
	}
	h.traced.end()
	h.state = idle
	return l.grantLocked(l.queue.Release(&h.req), h)
}

// unmap ends the mappings of h and, where they could change the data, makes
// the new version.
func (l *Location) unmap(h *Handle) {
	h.mapped = false
	if l.memory.file != nil {
		unpin(h)
	}
	if h.wrote {
		h.wrote = false
		l.version++
		l.note(h)
	}
	if len(h.views) > 0 {
		retireViews(h)
	}
}

// note keeps what changed in the version that h made.
func (l *Location) note(h *Handle) {
	switch {
	case l.journal == nil:
	case h.served != nil && h.served.pieces != nil:
		l.journal.wrote(l.memory.bytes, h.served.pieces, l.version)
	default:
		l.journal.commit(l.memory.bytes, l.version)
	}
}

// grantLocked marks the requests from first on as granted and returns those
// whose tasks sleep.
func (l *Location) grantLocked(first *fifo.Request[*Handle], by *Handle) wakeList {
	var wake wakeList
	for r := first; r != nil; r = r.NextGranted() {
		l.grantOne(r.Owner, by, &wake)
	}
	return wake
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
	wake := l.takeOutLocked(h)
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
func (l *Location) takeOutLocked(h *Handle) wakeList {
	h.traced.end()
	h.state = idle
	if !h.req.Queued() {
		l.latch.forget(h)
		return wakeList{}
	}
	return l.grantLocked(l.queue.Cancel(&h.req), h)
}

func (l *Location) park(ctx context.Context, h *Handle) error { return park(ctx, h.token) }

func (l *Location) polled(*Handle) {}
