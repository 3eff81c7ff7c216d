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

// admitAllLocked says whether the locations, which are those of the postings, take all of
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
