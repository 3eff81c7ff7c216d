package orwl

import "fairway/internal/fifo"

// Most requests meet a location that nobody traces, where nothing is latched or
// poisoned, and come from a task of this process. Then the queue alone decides, nobody
// but the task that is next must be told, and insert, cycle and release may do in fewer
// steps what insertRanked, cycleWatched and releaseLocked do in general. Both ways
// leave the same state behind and hold the same lock, so each request may go either way,
// whatever those before and behind it did.

// plain reports, under the lock, whether h can be inserted in the short way.
func (l *Location) plain(h *Handle) bool {
	return l.latch == nil && l.trace == nil && l.err == nil && !h.busy() && h.served == nil && l.queue.Len() < l.limit
}

func (l *Location) insert(h *Handle, m Mode) error {
	l.mu.Lock()
	if !l.plain(h) {
		l.mu.Unlock()
		return l.insertRanked(h, m, 0)
	}
	h.res, h.req.Owner, h.mode = l, h, m
	if l.queue.Insert(&h.req, m) {
		h.state = held
		l.generation++
		h.generation = l.generation
	} else {
		h.awaits()
	}
	l.mu.Unlock()
	return nil
}

func (l *Location) cycle(cur, next *Handle) error {
	l.mu.Lock()
	if cur.state != held {
		l.mu.Unlock()
		return l.refuse(ErrNotHeld)
	}
	if !l.plain(next) {
		return l.cycleWatched(cur, next)
	}
	if cur.mapped {
		l.unmap(cur)
	}
	next.res, next.req.Owner, next.mode = l, next, cur.mode
	cur.state = idle
	first := l.queue.Cycle(&cur.req, &next.req)
	if h := ownerOf(first); h != next && h != nil && first.NextGranted() == nil && h.served == nil {
		// The usual case: the turn passes to one other task.
		l.generation++
		h.generation, h.state = l.generation, held
		next.awaits()
		l.mu.Unlock()
		h.token <- struct{}{}
		return nil
	}
	var wake wakeList
	l.grantLocked(first, cur, &wake)
	if next.state != held {
		next.awaits()
	}
	l.mu.Unlock()
	wake.up()
	return nil
}

func ownerOf(r *fifo.Request[*Handle]) *Handle {
	if r == nil {
		return nil
	}
	return r.Owner
}

func (l *Location) release(h *Handle) error {
	l.mu.Lock()
	if h.state != held {
		l.mu.Unlock()
		return l.refuse(ErrNotHeld)
	}
	if h.mapped || l.trace != nil || l.queue.Len() > 1 {
		var wake wakeList
		l.releaseLocked(h, &wake)
		l.mu.Unlock()
		wake.up()
		return nil
	}
	h.state = idle
	l.queue.Release(&h.req)
	l.mu.Unlock()
	return nil
}
