package orwl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"fairway/lib/fifo"
)

// Posting is a request that is yet to be inserted, together with others.
type Posting struct {
	// Rank is the place among the requests on one resource in a Gate: lower
	// ones stand first, equal ones in the order in which they came.
	Rank int

	first, last int // phases

	handle   *Handle
	other    *Handle // of a pair
	resource Resource
	mode     Mode
}

// Reading prepares a request of r for reading, for Insert or a Gate.
func (h *Handle) Reading(r Resource) Posting { return Posting{handle: h, resource: r, mode: Read} }

// Writing prepares a request of r for writing, for Insert or a Gate.
func (h *Handle) Writing(r Resource) Posting { return Posting{handle: h, resource: r, mode: Write} }

// Reading binds the pair to r for reading and prepares the first request.
func (p *Pair) Reading(r Resource) Posting { return p.posting(r, Read) }

// Writing binds the pair to r for writing and prepares the first request.
func (p *Pair) Writing(r Resource) Posting { return p.posting(r, Write) }

func (p *Pair) posting(r Resource, m Mode) Posting {
	if p == nil {
		return Posting{resource: r, mode: m}
	}
	return Posting{handle: p.now(), other: &p.handles[p.current^1], resource: r, mode: m}
}

// nameAfter names the handles by their task, where they have no name.
func (p Posting) nameAfter(task string) {
	for _, h := range []*Handle{p.handle, p.other} {
		if h != nil && h.Name == "" {
			h.Name = task
		}
	}
}

// At returns the posting with a rank.
func (p Posting) At(rank int) Posting {
	p.Rank = rank
	return p
}

// In returns the posting of a request that its task holds in one phase only. A task
// that does not hold all its requests at once goes through phases: it begins each by
// acquiring the requests of that phase, and ends it by releasing them, with pairs by posting
// the next ones. Phases have numbers, from 0; a posting without In or During is of phase 0. Which
// orders can deadlock depends on them.
func (p Posting) In(phase int) Posting { return p.During(phase, phase) }

// During returns the posting of a request that its task acquires at the beginning of the
// phase first, and releases at the end of the phase last. A last before first means first.
func (p Posting) During(first, last int) Posting {
	p.first, p.last = first, max(first, last)
	return p
}

// place is what the posting is in an Order.
func (p Posting) place(task string) Place {
	return Place{Task: task, Mode: p.mode, First: p.first, Last: p.last}
}

func (p Posting) refuse(err error) error { return p.handle.refuseAt(p.resource, err) }

// complete refuses postings of nothing.
func complete(postings []Posting) error {
	for i, p := range postings {
		if p.handle == nil || missing(p.resource) {
			return fmt.Errorf("posting %d of %d: %w", i+1, len(postings), ErrNothing)
		}
	}
	return nil
}

// ErrSelfConflict refuses requests of one task that would wait for each other: they
// conflict, and the one that stands first is not released in an earlier phase than the
// other is acquired.
var ErrSelfConflict = errors.New("two requests of one task conflict")

// ErrTwoWays refuses an insertion that reaches one location in two ways: as a
// location of this process and by a connection to itself, or by two connections.
// Its second part would wait for the first.
var ErrTwoWays = errors.New("one insertion reaches the location in two ways")

// Insert inserts all requests of a task as one: of two tasks that insert so,
// one stands before the other wherever they meet. Hence tasks that insert so, and
// acquire all before they release any or go through their phases (Posting.In), cannot
// deadlock. Either all requests are inserted or none.
//
// Insert waits only while another insertion that spans several processes is
// under way in one of the resources, or where this one spans several itself.
// An inserter that dies leaves nothing behind. A location that can be reached in
// several ways, say by two connections, must be named in one way only (ErrTwoWays).
func Insert(ctx context.Context, postings ...Posting) error {
	if err := complete(postings); err != nil {
		return err
	}
	if err := selfConflict(postings); err != nil {
		return err
	}
	return insertAll(ctx, postings)
}

// selfConflict refuses the requests of a task that can wait for each other, in the order of
// the postings or, before the start of a location, in that of their ranks.
func selfConflict(postings []Posting) error {
	seen := make(map[Resource]bool, len(postings))
	for _, p := range postings {
		if seen[p.resource] {
			byRank := slices.Clone(postings)
			slices.SortStableFunc(byRank, func(p, q Posting) int { return cmp.Compare(p.Rank, q.Rank) })
			return cmp.Or(conflictIn(postings), conflictIn(byRank))
		}
		seen[p.resource] = true
	}
	return nil
}

// conflictIn refuses an order of one task's requests.
func conflictIn(postings []Posting) error {
	var resources []Resource
	var orders [][]fifo.Entry[struct{}]
	at := make(map[Resource]int)
	for _, p := range postings {
		i, ok := at[p.resource]
		if !ok {
			i = len(orders)
			at[p.resource] = i
			resources, orders = append(resources, p.resource), append(orders, nil)
		}
		orders[i] = append(orders[i], fifo.Entry[struct{}]{Mode: p.mode, First: p.first, Last: p.last})
	}
	for _, w := range fifo.Check(orders) {
		if w.Location != fifo.Own {
			return fmt.Errorf("location %s: %w", resources[w.Location].Name(), ErrSelfConflict)
		}
	}
	return nil
}
