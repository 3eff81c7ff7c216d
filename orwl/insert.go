package orwl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Posting is a request that is yet to be inserted, together with others.
type Posting struct {
	// Rank is the place among the requests on one resource in a Gate: lower
	// ones stand first, equal ones in the order in which they came.
	Rank int

	handle   *Handle
	resource Resource
	mode     Mode
}

// Reading prepares a request of r for reading, for Insert or a Gate.
func (h *Handle) Reading(r Resource) Posting { return Posting{handle: h, resource: r, mode: Read} }

// Writing prepares a request of r for writing, for Insert or a Gate.
func (h *Handle) Writing(r Resource) Posting { return Posting{handle: h, resource: r, mode: Write} }

// Reading binds the pair to r for reading and prepares the first request.
func (p *Pair) Reading(r Resource) Posting { return p.now().Reading(r) }

// Writing binds the pair to r for writing and prepares the first request.
func (p *Pair) Writing(r Resource) Posting { return p.now().Writing(r) }

// At returns the posting with a rank.
func (p Posting) At(rank int) Posting {
	p.Rank = rank
	return p
}

// ErrSelfConflict refuses requests of one task that would wait for each other.
var ErrSelfConflict = errors.New("two requests of one task conflict")

// Insert inserts all requests of a task as one: of two tasks that insert so,
// one stands before the other wherever they meet. Hence tasks that insert so,
// acquire all and then release cannot deadlock. Either all requests are
// inserted or none.
//
// Insert waits only while another insertion that spans several processes is
// under way in one of the resources, or where this one spans several itself.
// An inserter that dies leaves nothing behind.
func Insert(ctx context.Context, postings ...Posting) error {
	if err := selfConflict(postings); err != nil {
		return err
	}
	return insertAll(ctx, postings)
}

func selfConflict(postings []Posting) error {
	for i, p := range postings {
		for _, q := range postings[:i] {
			if p.resource == q.resource && (p.mode == Write || q.mode == Write) {
				return fmt.Errorf("location %s: %w", p.resource.Name(), ErrSelfConflict)
			}
		}
	}
	return nil
}

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

// insertAll reserves with one owner after the other, in the order of their ids
// (two-phase locking of insertion; the order excludes deadlock), and then opens
// all latches.
func insertAll(ctx context.Context, postings []Posting) error {
	byOwner := make(map[owner][]Posting)
	var owners []owner
	for _, p := range postings {
		o := p.resource.owner()
		if _, ok := byOwner[o]; !ok {
			owners = append(owners, o)
		}
		byOwner[o] = append(byOwner[o], p)
	}
	if len(owners) == 1 && owners[0] == (localOwner{}) {
		return insertLocal(ctx, postings)
	}
	slices.SortFunc(owners, func(a, b owner) int { return cmp.Compare(a.ownerID(), b.ownerID()) })
	var reserved []reservation
	var err error
	for _, o := range owners {
		var r reservation
		if r, err = o.reserve(ctx, byOwner[o]); err != nil {
			break
		}
		reserved = append(reserved, r)
	}
	for _, r := range reserved {
		r.settle(err == nil)
	}
	return err
}

// localOwner is this process.
type localOwner struct{}

func (localOwner) ownerID() string { return processID }

func (localOwner) reserve(ctx context.Context, postings []Posting) (reservation, error) {
	locked, err := lockUnlatched(ctx, postings)
	if err != nil {
		return nil, err
	}
	defer unlockAll(locked)
	if err := insertLocked(postings); err != nil {
		return nil, err
	}
	latched := slices.DeleteFunc(slices.Clone(locked), func(l *Location) bool { return l.latch != nil })
	for _, l := range latched {
		l.latch = newLatch()
	}
	return &localReservation{latched: latched, postings: postings, immediate: heldLocked(postings)}, nil
}

// insertLocal is the insertion that only concerns this process: no latch.
func insertLocal(ctx context.Context, postings []Posting) error {
	locs, err := lockUnlatched(ctx, postings)
	if err != nil {
		return err
	}
	err = insertLocked(postings)
	var immediate wakeList
	if err == nil {
		immediate = heldLocked(postings)
	}
	unlockAll(locs)
	immediate.up()
	return err
}

// insertLocked inserts all or none.
func insertLocked(postings []Posting) error {
	for i, p := range postings {
		if err := p.location().insertLocked(p.handle, p.mode, p.Rank); err != nil {
			for _, q := range postings[:i] {
				q.location().takeOutLocked(q.handle).up()
				q.handle.pending = false
			}
			return err
		}
	}
	return nil
}

// heldLocked returns those of the postings that are granted already and whose
// owners want to be told.
func heldLocked(postings []Posting) wakeList {
	var wake wakeList
	for _, p := range postings {
		if p.handle.unnoticed() {
			wake.add(p.handle)
		}
	}
	return wake
}

func (p Posting) location() *Location { return p.resource.(*Location) }

// lockUnlatched locks the locations of the postings, each once and in the
// order of their numbers, when none of them is latched.
func lockUnlatched(ctx context.Context, postings []Posting) ([]*Location, error) {
	locs := make([]*Location, len(postings))
	for i, p := range postings {
		locs[i] = p.location()
	}
	slices.SortFunc(locs, func(a, b *Location) int { return cmp.Compare(a.id, b.id) })
	locs = slices.Compact(locs)
	for {
		for _, l := range locs {
			l.mu.Lock()
		}
		latched := slices.IndexFunc(locs, func(l *Location) bool { return l.latch != nil && l.latch.missing == 0 })
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
	latched   []*Location // without those that wait for their start
	postings  []Posting
	immediate wakeList
}

func (r *localReservation) settle(keep bool) {
	if keep {
		r.immediate.up()
	} else {
		for _, p := range r.postings {
			p.takeBack()
		}
	}
	for _, l := range r.latched {
		l.mu.Lock()
		wake := l.unlatchLocked()
		l.mu.Unlock()
		wake.up()
	}
}

// takeBack undoes an insertion, on behalf of whoever it is for.
func (p Posting) takeBack() {
	l := p.location()
	switch {
	case p.handle.notify == nil:
		p.handle.Cancel()
	case !l.withdraw(p.handle):
		l.release(p.handle)
	}
}

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
