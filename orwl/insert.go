package orwl

import (
	"context"
	"errors"
	"fmt"
)

// Posting is a request that is yet to be inserted, together with others.
type Posting struct {
	// Rank is the place among the requests on one resource in a Gate: lower
	// ones stand first, equal ones in the order in which they came.
	Rank int

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
func (p *Pair) Reading(r Resource) Posting { return p.now().Reading(r).paired(p) }

// Writing binds the pair to r for writing and prepares the first request.
func (p *Pair) Writing(r Resource) Posting { return p.now().Writing(r).paired(p) }

func (p Posting) paired(with *Pair) Posting {
	p.other = &with.handles[with.current^1]
	return p
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

func (p Posting) refuse(err error) error { return p.handle.refuseAt(p.resource, err) }

// ErrSelfConflict refuses requests of one task that would wait for each other.
var ErrSelfConflict = errors.New("two requests of one task conflict")

// ErrTwoWays refuses an insertion that reaches one location in two ways: as a
// location of this process and by a connection to itself, or by two connections.
// Its second part would wait for the first.
var ErrTwoWays = errors.New("one insertion reaches the location in two ways")

// Insert inserts all requests of a task as one: of two tasks that insert so,
// one stands before the other wherever they meet. Hence tasks that insert so,
// acquire all and then release cannot deadlock. Either all requests are
// inserted or none.
//
// Insert waits only while another insertion that spans several processes is
// under way in one of the resources, or where this one spans several itself.
// An inserter that dies leaves nothing behind. A location that can be reached in
// several ways, say by two connections, must be named in one way only (ErrTwoWays).
func Insert(ctx context.Context, postings ...Posting) error {
	if err := selfConflict(postings); err != nil {
		return err
	}
	return insertAll(ctx, postings)
}

func selfConflict(postings []Posting) error {
	before := make(map[Resource]Mode, len(postings))
	for _, p := range postings {
		m, again := before[p.resource]
		if again && (p.mode == Write || m == Write) {
			return fmt.Errorf("location %s: %w", p.resource.Name(), ErrSelfConflict)
		}
		before[p.resource] = p.mode
	}
	return nil
}
