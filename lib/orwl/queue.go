package orwl

import (
	"context"
	"slices"

	"fairway/lib/fifo"
)

// A request is granted in one of these:
//
//	Location.insert, placeLocked  at once, where nobody is before it
//	Location.release, cycle       by grantLocked, when those before it have left
//	Location.unlatchLocked        when a Gate or an Insert of several has all its places
//
// Most requests meet a location that nobody else uses, and are released before anybody
// else comes. For them the location has one word, which a task takes with its request and
// gives back with its release; the queue and its mutex are for the others.
//
//	nil       nobody has a request, and the queue is empty
//	a handle  its request is granted, nobody else has one, and the queue is empty
//	queueing  whatever there is stands in the queue
//	reading   reads go by slots (readers.go), and the queue has granted reads only
//
// Who changes it:
//
//  1. a task, by one compare and swap without the mutex: from nil to its handle (request),
//     from its handle to nil (release), and from one handle of its pair to the other
//     (cycle);
//  2. whoever holds the mutex: by compare and swap to queueing (engage), whatever was there,
//     and from queueing to anything else (rest), when the queue is empty or has the
//     releasing task alone, and has been so for a while, or to reading (shares), when it
//     has granted reads only.
//
// So under the mutex queueing stays, and as long as it is there nobody does 1: the
// queue decides alone, as if there were no word. engage comes before every look at the
// queue. It puts the handle that it finds at the head of the empty queue as granted, which
// is the place that handle would have had; its task notices when its own compare and swap
// fails, and goes by the queue. A task succeeds with 1 only where nobody stands in the queue, so it
// overtakes nobody, and nobody is left to be woken: who wants to wait has engaged the queue
// first, and then the release comes by the queue.
//
// What one task wrote under the lock the next one sees: each compare and swap, and each
// store by rest, is ordered after the one that it follows, and reads share the lock only in
// the queue, under the mutex.
//
// A task that takes the word fills in its handle before, since from then on another one may
// put the handle into the queue and look at its mode, name and state. Later the task writes to
// its handle again when it has given back the word, or under the mutex.

// queueing is what the word says while the queue decides.
var queueing = new(Handle)

// simple reports, under the mutex, whether requests may go by the word: where nobody
// traces them, nothing is latched or poisoned, versions need no journal, and a pair's
// two requests are below the limit.
func (l *Location) simple() bool {
	return l.latch == nil && l.trace == nil && l.err == nil && l.journal == nil && l.limit >= 2
}

// engageLocked has the queue decide, until restLocked. The caller has seen that it does not
// yet.
func (l *Location) engageLocked() {
	h := l.word.Load()
	for !l.word.CompareAndSwap(h, queueing) {
		h = l.word.Load()
	}
	switch h {
	case nil:
	case reading:
		l.closeLocked()
	default:
		l.queueGrantedLocked(h)
	}
}

// queueGrantedLocked puts a handle into the queue that was granted without it.
func (l *Location) queueGrantedLocked(h *Handle) {
	l.queue.Insert(&h.req, h.mode)
	l.generation++
	h.generation = l.generation
}

// lock locks the location for those who look at the queue.
func (l *Location) lock() {
	l.mu.Lock()
	if l.word.Load() != queueing {
		l.engageLocked()
	}
}

// calmAfter is how many requests in a row must have met nobody until the word is used
// again. Where tasks meet all the time the queue is cheaper than to engage it each time.
const calmAfter = 8

// calmsLocked counts a request that leaves the queue empty, and reports whether the word may
// be used again.
func (l *Location) calmsLocked() bool {
	l.calm++
	return l.calm >= calmAfter && l.simple()
}

// restLocked lets requests go by the word again. The queue is empty, and the word is for h, or
// for nobody.
func (l *Location) restLocked(h *Handle) {
	l.calm = 0
	l.word.Store(h)
}

// take makes h, which is idle, the handle that has the lock alone.
func (l *Location) take(h *Handle, m Mode) {
	h.res, h.req.Owner, h.mode, h.state = l, h, m, held
}

func (l *Location) insert(h *Handle, m Mode) error {
	if l == nil {
		return h.refuseAt(nil, ErrNothing)
	}
	if m == Read && l.word.Load() == reading && !h.busy() && l.enter(h) {
		return nil
	}
	l.mu.Lock()
	switch l.word.Load() {
	case queueing:
	case reading:
		if m == Read && !h.busy() && l.roomForReaders() {
			l.take(h, m)
			l.queueGrantedLocked(h)
			l.mu.Unlock()
			return nil
		}
		l.engageLocked()
	default:
		l.engageLocked()
	}
	if !l.simple() || h.busy() || l.queue.Len() >= l.limit {
		l.mu.Unlock()
		return l.insertRanked(h, m, 0)
	}
	h.res, h.req.Owner, h.mode = l, h, m
	if l.queue.Len() > 0 {
		l.calm = 0
	}
	if l.queue.Insert(&h.req, m) {
		h.state = held
		l.generation++
		h.generation = l.generation
		if m == Read && l.queue.Len() > 1 {
			l.sharesLocked()
		}
	} else {
		l.reads = 0
		h.awaits()
	}
	l.mu.Unlock()
	return nil
}

func (l *Location) release(h *Handle) error {
	wrote := h.mapped && l.endMappings(h)
	if s := h.slot; s != nil {
		h.slot = nil
		if s.handle.CompareAndSwap(h, nil) {
			h.state = idle
			return nil
		}
	} else if l.word.Load() == h && l.word.CompareAndSwap(h, nil) {
		h.state = idle
		return nil
	}
	l.mu.Lock()
	if h.state != held {
		l.mu.Unlock()
		return l.refuse(ErrNotHeld)
	}
	switch l.word.Load() { // here, and not by lock, which is not inlined
	case queueing:
	case reading:
		h.state = idle
		l.queue.Release(&h.req)
		l.mu.Unlock()
		return nil
	default:
		l.engageLocked()
	}
	if wrote {
		l.recordChanges(h)
	}
	if l.queue.Len() == 1 && l.trace == nil {
		h.state = idle
		l.queue.Release(&h.req)
		if l.calmsLocked() {
			l.restLocked(nil)
		}
		l.mu.Unlock()
		return nil
	}
	var wake wakeList
	l.releaseLocked(h, &wake)
	l.mu.Unlock()
	wake.up()
	return nil
}

func (l *Location) cycle(cur, next *Handle) error {
	wrote := cur.mapped && l.endMappings(cur)
	if s := cur.slot; s != nil {
		cur.slot = nil
		if !next.busy() {
			l.take(next, Read)
			if s.handle.CompareAndSwap(cur, next) {
				cur.state, next.slot = idle, s
				return nil
			}
			next.state = idle
		}
	} else if l.word.Load() == cur && !next.busy() {
		l.take(next, cur.mode)
		if l.word.CompareAndSwap(cur, next) {
			cur.state = idle
			return nil
		}
		next.state = idle
	}
	l.mu.Lock()
	if cur.state != held {
		l.mu.Unlock()
		return l.refuse(ErrNotHeld)
	}
	switch l.word.Load() {
	case queueing:
	case reading:
		if next.served == nil && !next.busy() && l.enter(next) {
			cur.state = idle
			l.queue.Release(&cur.req)
			l.mu.Unlock()
			return nil
		}
		l.engageLocked()
	default:
		l.engageLocked()
	}
	if wrote {
		l.recordChanges(cur)
	}
	if !l.simple() || next.served != nil || next.busy() || l.queue.Len() >= l.limit {
		return l.cycleWatched(cur, next)
	}
	cur.state = idle
	l.take(next, cur.mode)
	if l.queue.Len() == 1 {
		l.queue.Release(&cur.req)
		if l.calmsLocked() {
			l.restLocked(next)
		} else {
			l.queue.Insert(&next.req, next.mode)
			l.generation++
			next.generation = l.generation
		}
		l.mu.Unlock()
		return nil
	}
	first := l.queue.Cycle(&cur.req, &next.req)
	if h := ownerOf(first); h != next && h != nil && first.NextGranted() == nil && h.served == nil {
		// The usual case: the turn passes to one other task.
		l.generation++
		h.generation, h.state = l.generation, held
		next.awaits()
		l.mu.Unlock()
		h.token.Give()
		return nil
	}
	var wake wakeList
	l.grantLocked(first, cur, &wake)
	switch {
	case !next.req.Granted():
		l.reads = 0
		next.awaits()
	case next.mode == Read:
		l.sharesLocked()
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

// admit reports whether the location takes one more request beyond those that stand
// there and the number that is about to come.
func (l *Location) admit(arriving int) error {
	switch {
	case l.err != nil:
		return l.err
	case l.standingLocked()+arriving >= l.limit:
		return ErrFull
	}
	return nil
}

// standingLocked is the number of requests in the queue and behind the latch.
func (l *Location) standingLocked() int {
	if l.latch != nil {
		return l.queue.Len() + len(l.latch.postponed)
	}
	return l.queue.Len()
}

// placeLocked puts h, which was admitted, at the end of the queue or behind the latch. The
// rank counts only before the start. Where the task is in another process and the
// request is granted at once, that is told by wake.
func (l *Location) placeLocked(h *Handle, m Mode, rank int, wake *wakeList) {
	h.res, h.req.Owner, h.mode, h.traced = l, h, m, nil
	l.calm, l.reads = 0, 0
	if l.trace != nil {
		l.trace.requested(h, l.name, m)
	}
	switch {
	case l.latch != nil:
		h.awaits()
		l.latch.postponed = append(l.latch.postponed, Posting{handle: h, mode: m, Rank: rank})
	case l.queue.Insert(&h.req, m):
		h.state = held
		l.recordGrant(h, nil)
		if h.served != nil {
			wake.add(h)
		}
	default:
		h.awaits()
	}
}

var nobody Handle

// recordGrant gives a grant its generation and has it traced; by is whose release it
// follows, if any. It tells nobody: wakeList.up does.
func (l *Location) recordGrant(h, by *Handle) {
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

// recordChanges keeps what changed in the version that h made. Where a handle releases by the
// word there is no journal.
func (l *Location) recordChanges(h *Handle) {
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
		h := r.Owner
		l.recordGrant(h, by)
		if h.state == waiting {
			wake.add(h)
		}
		h.state = held
	}
}

// wakeList collects under a location's lock the handles to wake after it.
type wakeList struct{ first, last *Handle }

func (w *wakeList) add(h *Handle) {
	if w.first == nil {
		w.first = h
	} else {
		w.last.nextWoken = h
	}
	w.last = h
}

// up sends the tokens. A handle may be used again as soon as it has its own.
func (w wakeList) up() {
	for h := w.first; h != nil; {
		next := h.nextWoken
		h.nextWoken = nil
		if h.served != nil {
			h.served.decided()
		} else {
			h.token.Give()
		}
		h = next
	}
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
		var a *latch = l.latch
		a.postponed = slices.DeleteFunc(a.postponed, func(p Posting) bool { return p.handle == h })
		return
	}
	l.grantLocked(l.queue.Cancel(&h.req), h, wake)
}

func (l *Location) park(ctx context.Context, h *Handle) error { return h.park(ctx) }

func (l *Location) polled(*Handle) {}
