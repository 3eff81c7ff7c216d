package orwl

import (
	"context"
	"fmt"
	"runtime"

	"fairway/lib/orwl/internal/memory"
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
	replica  *replica
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
	l := h.remote.replica.link
	if ctx != context.Background() { // a task that can be interrupted does not read
		l.Resume()
		return h.park(ctx)
	}
	l.Await(h.token.Channel())
	h.token.Taken()
	return nil
}

// polled has the connection read, which a task that tests does not do itself.
func (m *Mirror) polled(h *Handle) { h.remote.replica.link.Resume() }

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
		r.changes(&f)
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
	r.held--
	p.unsaid = p.unsaid || f.OK
	cur.traced.end()
	if p.link != r.link || p.err != nil {
		return m.refuse(p.lostLocked())
	}
	if next != nil {
		m.awaitLocked(next, cur.mode)
		f.Next = next.remote.id
	}
	r.send(f)
	return nil
}

func (m *Mirror) generationOf(h *Handle) uint64 { return h.generation }

func (m *Mirror) view(h *Handle, mode Mode) ([]byte, error) {
	r := h.remote.replica
	if mode == Write && h.mode != Write {
		return nil, m.refuse(ErrReadOnly)
	}
	if r.draft != nil && h.mode == Write {
		return m.viewDraft(h, mode)
	}
	if mode == Write {
		r.beforeWrite(h)
	}
	h.mapped = true
	if r.draft != nil {
		m.peer.pin(h)
	}
	if m.peer.strict {
		return strictMapping(r.memory.File, r.memory.Size(), h, m.name, mode)
	}
	return r.memory.Bytes, nil
}

// viewDraft is for a writer to memory that is shared.
func (m *Mirror) viewDraft(h *Handle, mode Mode) ([]byte, error) {
	r := h.remote.replica
	if !h.mapped {
		if err := r.draft.Begin(r.memory, r.version); err != nil {
			return nil, m.refuse(err)
		}
		h.mapped = true
		m.peer.pin(h)
	}
	h.wrote = h.wrote || mode == Write
	return r.draft.Bytes, nil
}

func (m *Mirror) resize(h *Handle, size int) error {
	r := h.remote.replica
	if h.mode != Write {
		return m.refuse(ErrReadOnly)
	}
	if int64(size) > max(r.limit, int64(r.memory.Size())) {
		return m.refuse(fmt.Errorf("resizing to %d bytes, where at most %d are allowed: %w", size, r.limit, ErrTooLarge))
	}
	if r.draft != nil {
		if _, err := m.viewDraft(h, Write); err != nil {
			return err
		}
		if err := r.draft.Resize(size); err != nil {
			return m.refuse(fmt.Errorf("resizing: %w", err))
		}
		return nil
	}
	h.wrote, h.mapped = true, true
	r.journal = nil
	if err := r.memory.Resize(size); err != nil {
		return m.refuse(fmt.Errorf("resizing: %w", err))
	}
	return nil
}

// replica is the data of a mirror, for as long as one connection lasts. A task
// that still holds a lock of a connection that was lost keeps the replica of that
// time, and so cannot disturb those that go on.
//
// It changes while no request is granted, or under the write lock; the
// goroutine that reads the connection hands it over with a grant.
type replica struct {
	link    *transport.Link
	opened  bool          // for who has the right to read
	held    int           // requests that are granted, under the lock of the peer
	limit   int64         // bytes that Resize may give it
	draft   *memory.Draft // where the memory is the owner's
	memory  *memory.Region
	version uint64
	journal *memory.Journal
}

func newReplica(l *transport.Link) *replica { return &replica{link: l, memory: new(memory.Region)} }

// opens takes what the owner says of the location. The memory of a file is given
// back when nobody refers to the replica any more.
func (r *replica) opens(f *transport.Frame, name string, strict bool) (err error) {
	if r.opened {
		return fmt.Errorf("%w: location %s is opened twice", transport.ErrMalformed, name)
	}
	r.opened, r.limit = true, f.Size
	switch {
	case f.OK:
		r.draft = &memory.Draft{InPlace: f.Mode == Write}
		runtime.AddCleanup(r, (*memory.Draft).Close, r.draft)
	case strict:
		*r.memory, err = memory.NewInFile(name, 0)
	default:
		return nil
	}
	runtime.AddCleanup(r, (*memory.Region).Close, r.memory)
	return err
}

// update takes what comes with a grant. While tasks here hold the lock, which they do then
// for reading, nothing may come that changes what they see.
func (r *replica) update(f *transport.Frame, limit int64, held int) error {
	if !r.opened || held > 0 && (f.Version != r.version || f.OK || len(f.Extents) > 0 ||
		f.Size != int64(r.memory.Size())) {
		return fmt.Errorf("%w: a grant where there can be none", transport.ErrMalformed)
	}
	if f.Size > limit {
		return fmt.Errorf("%d bytes are sent, where at most %d are allowed: %w", f.Size, limit, ErrTooLarge)
	}
	size := int(f.Size)
	if r.draft != nil {
		r.version = f.Version
		return r.follow(f.OK, size)
	}
	if r.memory.Size() != size {
		if err := r.memory.Resize(size); err != nil {
			return err
		}
		r.journal = nil
	}
	if err := r.link.ReadInto(r.memory.Bytes); err != nil {
		return err
	}
	if r.journal != nil && len(f.Extents) > 0 {
		r.journal.Wrote(r.memory.Bytes, f.Extents, f.Version)
	}
	r.version = f.Version
	return nil
}

// follow maps the memory as the owner has it, when that has moved.
func (r *replica) follow(moved bool, size int) error {
	if !moved && r.memory.Size() != size {
		return fmt.Errorf("%w: memory of %d bytes has %d in its place", transport.ErrMalformed, r.memory.Size(), size)
	}
	if !moved {
		return nil
	}
	fd, err := r.link.TakeDescriptor()
	if err != nil {
		return err
	}
	r.memory.Close()
	*r.memory, err = memory.Receive(fd, size, r.draft.InPlace)
	return err
}

// beforeWrite makes sums of the data as it is, to find later what changed.
func (r *replica) beforeWrite(h *Handle) {
	if h.wrote {
		return
	}
	h.wrote = true
	if !memory.WorthAJournal(r.memory.Bytes) {
		return
	}
	if r.journal == nil {
		r.journal = memory.NewJournal(r.memory.Bytes, r.version)
	}
	r.journal.Before(r.memory.Bytes, r.version)
}

// changes describes what a writer did, and makes it the version of the replica.
func (r *replica) changes(f *transport.Frame) {
	data := r.memory.Bytes
	f.OK, f.Size = true, int64(len(data))
	r.version++
	if r.draft != nil {
		f.Size, f.Extents = int64(len(r.draft.Bytes)), r.draft.Changes(data, r.version)
		return
	}
	if r.journal == nil { // resized, or smaller than a block
		if len(data) > 0 {
			f.Extents = []memory.Extent{{Offset: 0, Length: len(data)}}
		}
		return
	}
	r.journal.Commit(data, r.version)
	f.Extents = r.journal.Since(len(data), r.version-1)
}

// send sends a release. The memory may be written again under the next grant,
// which can come before a large frame has left, so that is copied. A draft is
// written under the next write grant alone, which the owner gives when it has the frame.
func (r *replica) send(f transport.Frame) {
	if r.draft != nil {
		r.link.SendData(f, r.draft.Bytes, func() { runtime.KeepAlive(r) })
		return
	}
	data := r.memory.Bytes
	if n := f.DataLength(); n > transport.InlineLimit {
		stable, at := make([]byte, len(data)), 0
		for _, e := range f.Extents {
			at += copy(stable[e.Offset:e.Offset+e.Length], data[e.Offset:])
		}
		data = stable
	}
	r.link.SendData(f, data, nil)
}
