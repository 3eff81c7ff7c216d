package orwl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// owner is a process with locations, in an insertion that spans several.
type owner interface {
	// ownerID orders the owners the same way in every process.
	ownerID() string
	// reserve inserts the requests and latches their resources, so that
	// nobody inserts behind them until settle.
	reserve(ctx context.Context, postings []Posting) (reservation, error)
}

type reservation interface {
	// settle opens the latches; unless keep is set it first takes the requests
	// out again.
	settle(keep bool)
}

// insertAll reserves with one owner after the other (two-phase locking of insertion;
// their order excludes deadlock), and then opens all latches.
func insertAll(ctx context.Context, postings []Posting) error {
	if err := distinct(postings); err != nil {
		return err
	}
	if !slices.ContainsFunc(postings, func(p Posting) bool { return p.resource.owner() != localOwner{} }) {
		return insertLocal(ctx, postings)
	}
	parts, err := divide(postings)
	if err != nil {
		return err
	}
	var reserved []reservation
	for _, p := range parts {
		var r reservation
		if r, err = p.by.reserve(ctx, p.postings); err != nil {
			break
		}
		reserved = append(reserved, r)
	}
	for _, r := range reserved {
		r.settle(err == nil)
	}
	return err
}

// distinct refuses handles that have a request already or are posted twice.
func distinct(postings []Posting) error {
	for i, p := range postings {
		if p.handle.busy() || p.handle.posted {
			unmark(postings[:i])
			return p.refuse(ErrBusy)
		}
		p.handle.posted = true
	}
	unmark(postings)
	for _, p := range postings {
		for _, h := range []*Handle{p.handle, p.other} {
			if h != nil {
				h.first, h.last = p.first, p.last
			}
		}
	}
	return nil
}

func unmark(postings []Posting) {
	for _, p := range postings {
		p.handle.posted = false
	}
}

// part is what an insertion reserves at once.
type part struct {
	by       owner
	location uint64 // where it is of one location alone
	postings []Posting
}

// divide makes one part for each owner, in the order of their ids. An owner that is
// reached in several ways, as by two connections, has one part for each location, in
// the order of theirs: nobody waits there for a location while holding a later one.
func divide(postings []Posting) ([]part, error) {
	several := reachedInSeveralWays(postings)
	var parts []part
	for _, p := range postings {
		of := part{by: p.resource.owner()}
		if several[of.by.ownerID()] {
			of.location = p.resource.key().id
		}
		i := slices.IndexFunc(parts, func(q part) bool { return q.by == of.by && q.location == of.location })
		if i < 0 {
			i = len(parts)
			parts = append(parts, of)
		}
		parts[i].postings = append(parts[i].postings, p)
	}
	slices.SortFunc(parts, part.compare)
	for i := 1; i < len(parts); i++ {
		if parts[i].compare(parts[i-1]) == 0 {
			return nil, fmt.Errorf("location %s: %w", parts[i].postings[0].resource.Name(), ErrTwoWays)
		}
	}
	return parts, nil
}

func (p part) compare(q part) int {
	return cmp.Or(cmp.Compare(p.by.ownerID(), q.by.ownerID()), cmp.Compare(p.location, q.location))
}

// reachedInSeveralWays returns the ids of the owners that the resources reach by more
// than one connection, or by one from their own process.
func reachedInSeveralWays(postings []Posting) map[string]bool {
	ways, several := make(map[string]owner), make(map[string]bool)
	for _, p := range postings {
		o := p.resource.owner()
		id := o.ownerID()
		if first, ok := ways[id]; ok && first != o {
			several[id] = true
		}
		ways[id] = o
	}
	return several
}

// localOwner is this process.
type localOwner struct{}

func (localOwner) ownerID() string { return processID }

func (localOwner) reserve(ctx context.Context, postings []Posting) (reservation, error) {
	locs, err := lockUnlatched(ctx, postings)
	if err != nil {
		return nil, err
	}
	defer unlockAll(locs)
	if err := admitAllLocked(locs, postings); err != nil {
		return nil, err
	}
	r := &localReservation{postings: postings}
	for _, p := range postings {
		p.location().placeLocked(p.handle, p.mode, p.Rank, &r.immediate)
	}
	for _, l := range locs {
		r.held = append(r.held, heldLocation{l, l.holdLocked()})
	}
	return r, nil
}

// insertLocal is the insertion that only concerns this process. Nobody can refuse it
// afterwards, so it needs no latch.
func insertLocal(ctx context.Context, postings []Posting) error {
	locs, err := lockUnlatched(ctx, postings)
	if err != nil {
		return err
	}
	var wake wakeList
	if err = admitAllLocked(locs, postings); err == nil {
		for _, p := range postings {
			p.location().placeLocked(p.handle, p.mode, p.Rank, &wake)
		}
		for _, l := range locs {
			l.unlatchCompleteLocked(&wake)
		}
	}
	unlockAll(locs)
	wake.up()
	return err
}

// admitAllLocked reports whether the locations, which are those of the postings, take all of
// them. It changes nothing, so that a refusal leaves nothing to undo: taking out a
// request that was inserted may grant another one, and a grant cannot be taken back.
func admitAllLocked(locs []*Location, postings []Posting) (err error) {
	for _, p := range postings {
		l := p.location()
		if err = l.admit(l.arriving); err != nil {
			err = p.refuse(err)
			break
		}
		l.arriving++
	}
	for _, l := range locs {
		l.arriving = 0
	}
	return err
}

func (p Posting) location() *Location { return p.resource.(*Location) }

// lockUnlatched locks the locations of the postings, each once and in the
// order of their numbers, when no insertion is under way in any of them.
func lockUnlatched(ctx context.Context, postings []Posting) ([]*Location, error) {
	locs := make([]*Location, len(postings))
	for i, p := range postings {
		locs[i] = p.location()
	}
	slices.SortFunc(locs, func(a, b *Location) int { return cmp.Compare(a.id, b.id) })
	locs = slices.Compact(locs)
	for {
		for _, l := range locs {
			l.lock()
		}
		latched := slices.IndexFunc(locs, func(l *Location) bool { return l.latch != nil && !l.latch.starts() })
		if latched < 0 {
			return locs, nil
		}
		open := locs[latched].latch.open
		unlockAll(locs)
		select {
		case <-open:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func unlockAll(locs []*Location) {
	for _, l := range locs {
		l.mu.Unlock()
	}
}

type localReservation struct {
	held      []heldLocation
	postings  []Posting
	immediate wakeList // of other processes' requests, granted by their insertion
}

type heldLocation struct {
	location *Location
	latch    *latch
}

func (r *localReservation) settle(keep bool) {
	if keep {
		r.immediate.up()
	} else {
		for _, p := range r.postings {
			p.takeBack()
		}
	}
	for _, h := range r.held {
		h.location.letGo(h.latch)
	}
}

// takeBack undoes an insertion, on behalf of whoever it is for.
func (p Posting) takeBack() {
	l := p.location()
	switch {
	case p.handle.served == nil:
		p.handle.Cancel()
	case !l.withdraw(p.handle):
		l.release(p.handle)
	}
}

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
	if a.starts() {
		l.first = a.postponed[0].handle
	}
	for _, p := range a.postponed {
		if l.queue.Insert(&p.handle.req, p.mode) {
			l.grantLocked(&p.handle.req, nil, wake)
		}
	}
}
