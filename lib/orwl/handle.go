package orwl

import (
	"context"
	"errors"
	"fmt"

	"fairway/lib/fifo"
	"fairway/lib/orwl/internal/distribution"
	"fairway/lib/orwl/internal/token"
	"fairway/lib/sched"
)

// The states of a handle's request. They change under the location's lock.
const (
	idle    uint8 = iota
	waiting       // requested; whoever decides its fate sends a token
	held          // granted
	failed        // the request is gone; err says why
)

// Handle is a place in the queue of a Resource. Its zero value is ready for
// use, and it can be used again after Release. It must not be copied, as a copy
// has no request, and belongs to one task at a time.
type Handle struct {
	_ noCopy

	// Name says in traces, faults and cycles whose handle it is.
	Name string

	// The request that is under way, or was last. The task sets these before it posts, and nobody
	// changes them before the request is gone. req.Owner is the handle itself, so a copy of the
	// handle is known as one.
	res         Resource
	req         fifo.Request[*Handle]
	mode        Mode
	first, last int  // phases of the last posting
	detour      bool // Acquire takes the general way: for traces and mirrors

	// What becomes of it. The location's lock, at a mirror that of the peer, guards state while
	// the request waits, and generation also while it is granted. Otherwise they are the
	// task's. Where pending is set, one token comes, and until it is taken the task must not
	// look at state, generation and err.
	state      uint8
	pending    bool
	generation uint64
	err        error // why it failed
	token      token.Token
	nextWoken  *Handle // in the wakeList of who decides
	traced     *tracedRequest

	// What the task does under a grant; gone with the release.
	mapped bool
	wrote  bool
	views  []*strictView

	// Where a read went by a slot (readers.go); its task's.
	slot     *readerSlot
	slotHint uint8 // where it looks first

	posted bool           // among the postings that are looked through
	remote remoteRequest  // where the resource is a mirror
	served *servedRequest // where the task is in another process
}

// noCopy lets go vet tell copies of what contains it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// remoteRequest is what a request through a mirror has besides.
type remoteRequest struct {
	id      uint64 // by which the owner knows it
	replica *distribution.Replica
}

// ReadRequest asks for r for reading. It takes the place in the queue and
// does not wait.
func (h *Handle) ReadRequest(r Resource) error { return h.request(r, Read) }

// WriteRequest asks for r for writing. It takes the place in the queue and
// does not wait.
func (h *Handle) WriteRequest(r Resource) error { return h.request(r, Write) }

func (h *Handle) request(r Resource, m Mode) error {
	// A task that meets nobody goes no further than this, which saves a call.
	if l, ok := r.(*Location); ok && l != nil && !h.busy() && l.word.Load() == nil {
		l.take(h, m)
		if l.word.CompareAndSwap(nil, h) {
			return nil
		}
		h.state = idle
	}
	if missing(r) {
		return h.refuseAt(nil, ErrNothing)
	}
	return r.insert(h, m)
}

// missing reports whether r is no location: nil, or what neither New nor Peer.Mirror has made.
func missing(r Resource) bool {
	switch r := r.(type) {
	case *Location:
		return r == nil || r.memory == nil
	case *Mirror:
		return r == nil || r.peer == nil
	}
	return true
}

// Acquire waits until the request is granted. When ctx ends first, the request
// leaves the queue at once and the error wraps that of ctx; a request that is
// granted at that moment counts as granted.
func (h *Handle) Acquire(ctx context.Context) error {
	if !h.pending || h.req.Owner != h {
		return h.fate()
	}
	if ctx != context.Background() || h.detour {
		return h.wait(ctx)
	}
	// The wait is here and not deeper down because after a switch of goroutines
	// the processor mispredicts every return.
	h.token.Take()
	h.pending = false
	return h.fate()
}

// Test reports whether the request is granted, without waiting. An error means
// that it never will be.
func (h *Handle) Test() (bool, error) {
	if h.pending && h.req.Owner == h {
		if !h.token.TryTake() {
			h.res.polled(h)
			return false, nil
		}
		h.pending = false
	}
	err := h.fate()
	return err == nil, err
}

// Release gives back the lock and grants the requests that come next. What
// was mapped must not be touched any more. An error means that the lock was
// lost before and that nothing written under it counts.
//
// At a Location nil means that the release is done. At a Mirror it means that the release is on
// its way, with what was written: when the connection is lost before it arrives, the owner
// goes on as its OnLoss says. It has arrived when Peer.Sync returns nil, or when a request that was
// made before it through the same mirror is granted after it: so the next Acquire of a Pair
// says what became of its last Release. ErrLeaseLost means that it may not have arrived.
func (h *Handle) Release() error {
	if !h.holds() {
		return h.refuse(ErrNotHeld)
	}
	return h.res.release(h)
}

// Cancel withdraws the request, wherever it stands in the queue, without
// waiting; a granted one it releases. Without a request it does nothing. Only
// the handle's task calls it: another goroutine ends the context of Acquire.
func (h *Handle) Cancel() error {
	if h.req.Owner != h {
		return nil
	}
	if h.pending {
		h.leave()
	}
	if h.holds() {
		return h.res.release(h)
	}
	h.state = idle
	return nil
}

// Generation returns the number of the grant, and 0 while the handle does not hold the
// lock. Each grant of a location has a higher one than those before, so it can fence
// what the task does elsewhere.
func (h *Handle) Generation() uint64 {
	if !h.holds() {
		return 0
	}
	return h.res.generationOf(h)
}

// ReadMap returns the data for reading, valid until Release. Writing to it
// is an error that only strict mode detects. A task that uses the data of a
// Mirror keeps the handle: that of a handle to which nobody refers any more
// goes with the connection.
func (h *Handle) ReadMap() ([]byte, error) { return h.view(Read) }

// WriteMap returns the data for writing, valid as with ReadMap, but only until
// Resize. It needs the write lock, and makes a new version at Release.
func (h *Handle) WriteMap() ([]byte, error) { return h.view(Write) }

// Resize changes the size of the data in bytes. It needs the write lock. What
// was there stays, up to the new size; what is new is zero. Mappings made
// before are invalid.
func (h *Handle) Resize(size int) error {
	if !h.holds() {
		return h.refuse(ErrNotHeld)
	}
	return h.res.resize(h, size)
}

// holds reports whether the handle has the lock. A copy of it has not: the request
// belongs to the handle that made it.
func (h *Handle) holds() bool { return !h.pending && h.state == held && h.req.Owner == h }

// awaits notes, under the location's lock, that a token will come.
func (h *Handle) awaits() {
	h.state, h.pending = waiting, true
	if h.served == nil {
		h.token.Expect()
	}
}

// busy reports whether the handle has a request already. Its task asks; others may change
// the state of a request that is pending.
func (h *Handle) busy() bool { return h.pending || h.state != idle }

func (h *Handle) view(m Mode) ([]byte, error) {
	if !h.holds() {
		return nil, h.refuse(ErrNotHeld)
	}
	return h.res.view(h, m)
}

// fate says what became of a request that is not pending. A copy of the handle has none.
func (h *Handle) fate() error {
	if h.state == held && h.req.Owner == h {
		return nil
	}
	return h.gone()
}

// wait is the general part of Acquire.
func (h *Handle) wait(ctx context.Context) error {
	if h.traced != nil {
		h.traced.sleeps()
	}
	err := h.res.park(ctx, h)
	if err != nil && h.leave() {
		return fmt.Errorf("waiting for %s: %w", h.res.Name(), err)
	}
	h.pending = false
	return h.fate()
}

// leave withdraws a pending request and reports whether it was still waiting.
// If not, it takes the token, which is sent or about to be.
func (h *Handle) leave() bool {
	left := h.res.withdraw(h)
	if !left {
		<-h.token.Channel()
	}
	h.token.Taken()
	h.pending = false
	return left
}

// gone says why there is no request, and makes the handle ready for the next.
func (h *Handle) gone() error {
	if h.state == failed && h.req.Owner == h {
		h.state = idle
		return h.err
	}
	return h.refuse(ErrNotRequested)
}

// refuse says where a call is out of place: at which location, if it ever had one, and
// through which handle, if that has a name.
func (h *Handle) refuse(err error) error {
	return h.refuseAt(h.res, err)
}

func (h *Handle) refuseAt(r Resource, err error) error {
	if h.Name != "" {
		err = fmt.Errorf("handle %s: %w", h.Name, err)
	}
	if r == nil {
		return err
	}
	return fmt.Errorf("location %s: %w", r.Name(), err)
}

// park waits for the token or the end of ctx.
func (h *Handle) park(ctx context.Context) error {
	err := park(ctx, h.token.Channel())
	if err == nil {
		h.token.Taken()
	}
	return err
}

// park waits for a token or the end of ctx; a task of package sched gives its
// slot to others meanwhile.
func park(ctx context.Context, token <-chan struct{}) error {
	if s := sched.Of(ctx); s != nil {
		_, err := sched.Receive(ctx, s, token)
		if errors.Is(err, sched.ErrChannelClosed) {
			return nil
		}
		return err
	}
	select {
	case <-token:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
