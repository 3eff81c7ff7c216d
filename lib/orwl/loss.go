package orwl

// Loss says what happens to a location when a process that holds it for
// writing dies or loses its lease. Its queued requests leave the queue in any
// case, and its reads are released.
type Loss uint8

const (
	// RollBack goes on with the version that was released last. A process that maps
	// the memory writes to a draft of its own, and its release sends what it changed.
	RollBack Loss = iota
	// Skip goes on with the data as it is. It differs from RollBack only for
	// memory that processes of one host share: they write to it in place, which
	// saves the copies of what they touch, and half of a lost write may be visible, as it was
	// when the lease was lost.
	Skip
	// Poison fails all requests, those that wait and those to come, with
	// ErrPoisoned.
	Poison
)

// OnLoss chooses what happens when a writer in another process is lost. The
// default is RollBack.
func OnLoss(loss Loss) Option { return func(l *Location) { l.loss = loss } }

// Shared puts the data of a location in memory that other processes of this
// host map when they reach it by a Unix socket: a grant then copies nothing,
// whatever the size. Under RollBack a write copies the pages that it touches. It
// needs Linux.
func Shared() Option { return func(l *Location) { l.shared = true } }

// writesInPlace reports whether processes that map the memory write to it, and
// not to drafts of their own.
func (l *Location) writesInPlace() bool { return l.loss != RollBack }

// lose ends a write that was lost. Memory that the lost process has written in place is
// left to it: it may only be stopped, and write when it goes on.
func (l *Location) lose(h *Handle, inPlace bool) {
	if l.loss == Poison || inPlace && l.memory.Move(l.memory.Size()) != nil {
		l.poison()
	} else if inPlace {
		// What was written stays, and is a new version.
		h.mapped, h.wrote = true, true
	}
	l.release(h)
}

// poison fails all that wait and all to come.
func (l *Location) poison() {
	l.lock()
	wake := l.failLocked(ErrPoisoned)
	l.mu.Unlock()
	wake.up()
}

// failLocked fails the requests that wait, in the queue and behind a latch, and
// all to come.
func (l *Location) failLocked(err error) wakeList {
	l.err = err
	var all []*Handle
	for r := l.queue.Head(); r != nil; r = r.Next() {
		if r.Owner.state == waiting {
			all = append(all, r.Owner)
		}
	}
	if l.latch != nil {
		for _, p := range l.latch.postponed {
			all = append(all, p.handle)
		}
		l.latch.postponed = nil
	}
	var wake wakeList
	for _, h := range all {
		if h.req.Queued() {
			l.queue.Cancel(&h.req)
		}
		h.traced.end()
		h.state, h.err = failed, l.refuse(err)
		wake.add(h)
	}
	return wake
}

// missAtStart fails a location whose start waits for a number of requests
// (StartWith), when h, which is lost, is one of them: the number would never be
// complete. It must come before h is withdrawn.
func (l *Location) missAtStart(h *Handle) {
	var wake wakeList
	l.lock()
	if l.latch != nil && l.latch.starts() && h.state == waiting && !h.req.Queued() {
		wake = l.failLocked(ErrAbsentTask)
	}
	l.mu.Unlock()
	wake.up()
}
