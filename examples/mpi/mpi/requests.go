package mpi

/*
#include <mpi.h>
#include <stdlib.h>

static int some(int n, MPI_Request *requests, int *indices) {
	int done;
	MPI_Testsome(n, requests, &done, indices, MPI_STATUSES_IGNORE);
	return done;
}
static int is_null(MPI_Request r) { return r == MPI_REQUEST_NULL; }
*/
import "C"

import (
	"context"
	"unsafe"

	"fairway/lib/sched"
)

// Requests has a scheduler detect which requests are complete: one call of MPI_Testsome for all
// that are waited for, as in Figure 1 of the paper.
type Requests struct {
	handle *sched.Handle[*Request, struct{}]

	// The arrays that MPI_Testsome wants, kept up to date as requests join and leave. The callbacks
	// of a kind never run at the same time, so they need no lock.
	members []*sched.Request[*Request, struct{}]
	places  map[*sched.Request[*Request, struct{}]]int
	pending []C.MPI_Request // of members, in memory of C
	indices []C.int         // as many
}

// NewRequests registers the kind. adjust may set its Interval, Eager, Reaction and Priority; nil
// leaves the defaults.
func NewRequests(s *sched.Scheduler, adjust func(*sched.Kind[*Request, struct{}])) *Requests {
	q := &Requests{places: make(map[*sched.Request[*Request, struct{}]]int)}
	kind := sched.Kind[*Request, struct{}]{Name: "mpi", Group: q.group, Poll: q.poll}
	if adjust != nil {
		adjust(&kind)
	}
	q.handle = sched.Register(s, kind)
	return q
}

// Wait waits until r is complete. If ctx ends first, r is still under way, and its buffer in use.
func (q *Requests) Wait(ctx context.Context, r *Request) error {
	_, err := q.handle.Wait(ctx, r)
	return err
}

// Counts tells how often MPI was asked.
func (q *Requests) Counts() sched.Counts { return q.handle.Counts() }

func (q *Requests) group(r *sched.Request[*Request, struct{}], joined bool) {
	if joined {
		if len(q.members) == len(q.pending) {
			q.grow()
		}
		q.places[r] = len(q.members)
		q.pending[len(q.members)] = r.Value.r
		q.members = append(q.members, r)
		if C.is_null(r.Value.r) != 0 { // MPI_Testsome passes over what was complete before
			r.Done(struct{}{}, nil)
		}
		return
	}
	at, last := q.places[r], len(q.members)-1
	r.Value.r = q.pending[at] // null if it is complete
	q.members[at], q.pending[at] = q.members[last], q.pending[last]
	q.places[q.members[at]] = at
	q.members[last] = nil
	q.members = q.members[:last]
	delete(q.places, r)
}

// grow doubles the arrays.
func (q *Requests) grow() {
	n := max(16, 2*len(q.pending))
	pending := unsafe.Slice((*C.MPI_Request)(C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof(*new(C.MPI_Request))))), n)
	indices := unsafe.Slice((*C.int)(C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof(C.int(0))))), n)
	copy(pending, q.pending)
	C.free(unsafe.Pointer(unsafe.SliceData(q.pending)))
	C.free(unsafe.Pointer(unsafe.SliceData(q.indices)))
	q.pending, q.indices = pending, indices
}

func (q *Requests) poll([]*sched.Request[*Request, struct{}]) {
	complete := C.some(C.int(len(q.members)), unsafe.SliceData(q.pending), unsafe.SliceData(q.indices))
	for k := range max(0, complete) { // MPI_UNDEFINED, which is negative: none is under way
		q.members[q.indices[k]].Done(struct{}{}, nil)
	}
}
