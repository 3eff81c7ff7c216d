package orwl

import (
	"cmp"
	"context"
	"slices"
)

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
	case p.handle.served == nil:
		p.handle.Cancel()
	case !l.withdraw(p.handle):
		l.release(p.handle)
	}
}
