package orwl

import (
	"context"
	"fmt"

	"fairway/lib/orwl/internal/distribution"
	"fairway/lib/orwl/internal/transport"
)

// Mirror is a location of another process. Requests through it stand in the
// owner's queue. The data comes with the grant: what has changed since the last
// time, once for all readers of this process, or nothing at all where the
// memory is shared. Releasing a write sends what the task changed.
//
// When the connection is lost and made again (see Peer) the mirror can be
// requested again.
type Mirror struct {
	peer *Peer
	id   uint64
	name string

	// Under the lock of the peer.
	trace    *Trace
	replica  *distribution.Replica
	location uint64  // its number at the owner
	twin     *Mirror // the mirror that was open before, in whose place nobody needs this one
}

// Name returns the name of the location.
func (m *Mirror) Name() string { return m.name }

func (m *Mirror) owner() owner { return m.peer }

func (m *Mirror) key() locationKey {
	m.peer.mu.Lock()
	defer m.peer.mu.Unlock()
	return locationKey{m.peer.other, m.location}
}

func (m *Mirror) refuse(err error) error { return fmt.Errorf("location %s: %w", m.name, err) }

func (m *Mirror) attach(t *Trace) {
	m.peer.mu.Lock()
	defer m.peer.mu.Unlock()
	m.trace = t
}

func (m *Mirror) insert(h *Handle, mode Mode) error {
	p := m.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := m.admitLocked(h); err != nil {
		return err
	}
	m.awaitLocked(h, mode)
	p.link.Send(transport.Frame{Kind: transport.Request, ID: h.remote.id, Mirror: m.id, Mode: mode, Text: h.Name})
	return nil
}

func (m *Mirror) admitLocked(h *Handle) error {
	switch {
	case m.peer.err != nil:
		return m.refuse(m.peer.err)
	case h.state != idle:
		return m.refuse(ErrBusy)
	}
	if err := checkName("the name of a handle", h.Name); err != nil {
		return m.refuse(err)
	}
	return nil
}

// awaitLocked registers a request that is about to be sent.
func (m *Mirror) awaitLocked(h *Handle, mode Mode) {
	m.peer.next++
	h.res, h.req.Owner, h.mode, h.traced, h.detour = m, h, mode, nil, true
	h.remote = remoteRequest{id: m.peer.next, replica: m.replica}
	if m.trace != nil {
		m.trace.requested(h, m.name, mode)
	}
	h.awaits()
	m.peer.pending[h.remote.id] = h
}

func (m *Mirror) park(ctx context.Context, h *Handle) error {
	l := h.remote.replica.Link
	if ctx != context.Background() { // a task that can be interrupted does not read
		l.Resume()
		return h.park(ctx)
	}
	l.Await(h.token.Channel())
	h.token.Taken()
	return nil
}

// polled has the connection read, which a task that tests does not do itself.
func (m *Mirror) polled(h *Handle) { h.remote.replica.Link.Resume() }

func (m *Mirror) withdraw(h *Handle) bool {
	p := m.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.state != waiting {
		return false
	}
	delete(p.pending, h.remote.id)
	h.traced.end()
	h.state = idle
	p.link.Send(transport.Frame{Kind: transport.Cancel, ID: h.remote.id})
	return true
}

func (m *Mirror) release(h *Handle) error { return m.pass(h, nil) }

func (m *Mirror) cycle(cur, next *Handle) error { return m.pass(cur, next) }

// pass releases cur and, in the same frame, posts next.
func (m *Mirror) pass(cur, next *Handle) error {
	f := transport.Frame{Kind: transport.Release, ID: cur.remote.id, Generation: cur.generation}
	r := cur.remote.replica
	if cur.wrote {
		r.Changes(&f)
	}
	cur.mapped, cur.wrote = false, false
	if len(cur.views) > 0 {
		retireViews(cur)
	}
	p := m.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	cur.state = idle
	delete(p.pinned, cur)
	r.Held--
	p.unsaid = p.unsaid || f.OK
	cur.traced.end()
	if p.link != r.Link || p.err != nil {
		return m.refuse(p.lostLocked())
	}
	if next != nil {
		m.awaitLocked(next, cur.mode)
		f.Next = next.remote.id
	}
	r.Send(f)
	return nil
}

func (m *Mirror) generationOf(h *Handle) uint64 { return h.generation }

func (m *Mirror) view(h *Handle, mode Mode) ([]byte, error) {
	r := h.remote.replica
	if mode == Write && h.mode != Write {
		return nil, m.refuse(ErrReadOnly)
	}
	if r.Draft != nil && h.mode == Write {
		return m.viewDraft(h, mode)
	}
	if mode == Write {
		if !h.wrote {
			h.wrote = true
			r.BeforeWrite()
		}
	}
	h.mapped = true
	if r.Draft != nil {
		m.peer.pin(h)
	}
	if m.peer.strict {
		return strictMapping(r.Memory.File, r.Memory.Size(), h, m.name, mode)
	}
	return r.Memory.Bytes, nil
}

// viewDraft is for a writer to memory that is shared.
func (m *Mirror) viewDraft(h *Handle, mode Mode) ([]byte, error) {
	r := h.remote.replica
	if !h.mapped {
		if err := r.Draft.Begin(r.Memory, r.Version); err != nil {
			return nil, m.refuse(err)
		}
		h.mapped = true
		m.peer.pin(h)
	}
	h.wrote = h.wrote || mode == Write
	return r.Draft.Bytes, nil
}

func (m *Mirror) resize(h *Handle, size int) error {
	r := h.remote.replica
	if h.mode != Write {
		return m.refuse(ErrReadOnly)
	}
	if int64(size) > max(r.Limit, int64(r.Memory.Size())) {
		return m.refuse(fmt.Errorf("resizing to %d bytes, where at most %d are allowed: %w", size, r.Limit, ErrTooLarge))
	}
	if r.Draft != nil {
		if _, err := m.viewDraft(h, Write); err != nil {
			return err
		}
		if err := r.Draft.Resize(size); err != nil {
			return m.refuse(fmt.Errorf("resizing: %w", err))
		}
		return nil
	}
	h.wrote, h.mapped = true, true
	if err := r.Resize(size); err != nil {
		return m.refuse(fmt.Errorf("resizing: %w", err))
	}
	return nil
}
