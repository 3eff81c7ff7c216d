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
	if allLocal(postings) {
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

func allLocal(postings []Posting) bool {
	return !slices.ContainsFunc(postings, func(p Posting) bool { return p.resource.owner() != localOwner{} })
}
