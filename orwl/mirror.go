package orwl

import "fmt"

// Mirror is a location of another process. Requests through it stand in the
// owner's queue. The data comes with the grant: what has changed since the last
// time, once for all readers of this process, or nothing at all where the
// memory is shared. Releasing a write sends what the task changed.
type Mirror struct {
	peer *Peer
	id   uint64
	name string

	// What follows changes while no request is granted, or under the write
	// lock; the goroutine that reads the connection hands it over with a grant.
	memory  memory
	version uint64
	journal *journal
}

// Name returns the name of the location.
func (m *Mirror) Name() string { return m.name }

func (m *Mirror) owner() owner { return m.peer }

func (m *Mirror) refuse(err error) error { return fmt.Errorf("location %s: %w", m.name, err) }

func (m *Mirror) insert(h *Handle, mode Mode) error {
	p := m.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := m.admitLocked(h); err != nil {
		return err
	}
	m.awaitLocked(h, mode)
	p.link.send(frame{kind: frameRequest, id: h.remoteID, mirror: m.id, mode: mode})
	return nil
}

func (m *Mirror) admitLocked(h *Handle) error {
	switch {
	case m.peer.err != nil:
		return m.refuse(m.peer.err)
	case h.state != idle:
		return m.refuse(ErrBusy)
	}
	return nil
}

// awaitLocked registers a request that is about to be sent.
func (m *Mirror) awaitLocked(h *Handle, mode Mode) {
	m.peer.next++
	h.remoteID, h.res, h.remoteMode, h.traced, h.detour = m.peer.next, m, mode, nil, true
	h.awaits()
	m.peer.pending[h.remoteID] = h
}

func (m *Mirror) withdraw(h *Handle) bool {
	p := m.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.state != waiting {
		return false
	}
	delete(p.pending, h.remoteID)
	h.state = idle
	p.link.send(frame{kind: frameCancel, id: h.remoteID})
	return true
}

func (m *Mirror) release(h *Handle) error { return m.pass(h, nil) }

func (m *Mirror) cycle(cur, next *Handle) error { return m.pass(cur, next) }

// pass releases cur and, in the same frame, posts next.
func (m *Mirror) pass(cur, next *Handle) error {
	f := frame{kind: frameRelease, id: cur.remoteID, generation: cur.generation}
	if cur.wrote {
		m.changes(&f)
	}
	cur.mapped, cur.wrote = false, false
	p := m.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	cur.state = idle
	if p.err != nil {
		return m.refuse(p.err)
	}
	if next != nil {
		m.awaitLocked(next, cur.remoteMode)
		f.next = next.remoteID
	}
	m.send(f)
	return nil
}

// send sends a release. The memory may be written again under the next grant,
// which can come before a large frame has left, so that is copied.
func (m *Mirror) send(f frame) {
	data := m.memory.bytes
	if n := f.dataLength(); n > inlineLimit {
		stable, at := make([]byte, len(data)), 0
		for _, e := range f.extents {
			at += copy(stable[e.offset:e.offset+e.length], data[e.offset:])
		}
		data = stable
	}
	m.peer.link.sendData(f, data, nil)
}

// changes describes what a writer did, and makes it the version of the mirror.
func (m *Mirror) changes(f *frame) {
	data := m.memory.bytes
	f.ok, f.size = true, int64(len(data))
	m.version++
	if m.memory.file != nil {
		return
	}
	if m.journal == nil { // resized, or smaller than a block
		f.extents = []extent{{0, len(data)}}
		if len(data) == 0 {
			f.extents = nil
		}
		return
	}
	m.journal.commit(data, m.version)
	f.extents = m.journal.since(len(data), m.version-1)
}

// update takes what comes with a grant.
func (m *Mirror) update(f *frame) error {
	size := int(f.size)
	if m.memory.file != nil {
		m.version = f.version
		if len(m.memory.bytes) == size {
			return nil
		}
		return m.memory.remap(size)
	}
	if len(m.memory.bytes) != size {
		if err := m.memory.resize(size); err != nil {
			return err
		}
		m.journal = nil
	}
	if err := m.peer.link.take(f, m.memory.bytes); err != nil {
		return err
	}
	if m.journal != nil && len(f.extents) > 0 {
		m.journal.wrote(m.memory.bytes, f.extents, f.version)
	}
	m.version = f.version
	return nil
}

func (m *Mirror) view(h *Handle, mode Mode) ([]byte, error) {
	if mode == Write {
		if h.remoteMode != Write {
			return nil, m.refuse(ErrReadOnly)
		}
		m.beforeWrite(h)
	}
	h.mapped = true
	return m.memory.bytes, nil
}

// beforeWrite makes sums of the data as it is, to find later what changed.
func (m *Mirror) beforeWrite(h *Handle) {
	if h.wrote {
		return
	}
	h.wrote = true
	if m.memory.file != nil || len(m.memory.bytes) <= blockSize {
		return
	}
	if m.journal == nil {
		m.journal = newJournal(m.memory.bytes, m.version)
	}
	if m.journal.unknown && m.journal.skip == 0 {
		m.journal.commit(m.memory.bytes, m.version)
	}
}

func (m *Mirror) resize(h *Handle, size int) error {
	if h.remoteMode != Write {
		return m.refuse(ErrReadOnly)
	}
	h.wrote, h.mapped = true, true
	m.journal = nil
	if err := m.memory.resize(size); err != nil {
		return fmt.Errorf("resizing location %s to %d bytes: %w", m.name, size, err)
	}
	return nil
}
