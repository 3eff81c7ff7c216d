package orwl

import (
	"fmt"
	"runtime"
)

// replica is the data of a mirror, for as long as one connection lasts. A task
// that still holds a lock of a connection that was lost keeps the replica of that
// time, and so cannot disturb those that go on.
//
// It changes while no request is granted, or under the write lock; the
// goroutine that reads the connection hands it over with a grant.
type replica struct {
	link    *link
	opened  bool   // for who has the right to read
	held    int    // requests that are granted, under the lock of the peer
	limit   int64  // bytes that Resize may give it
	draft   *draft // where the memory is the owner's
	memory  *memory
	version uint64
	journal *journal
}

func newReplica(l *link) *replica { return &replica{link: l, memory: new(memory)} }

// opens takes what the owner says of the location. The memory of a file is given
// back when nobody refers to the replica any more.
func (r *replica) opens(f *frame, name string, strict bool) (err error) {
	if r.opened {
		return fmt.Errorf("%w: location %s is opened twice", errFrame, name)
	}
	r.opened, r.limit = true, f.size
	switch {
	case f.ok:
		r.draft = &draft{inPlace: f.mode == Write}
		runtime.AddCleanup(r, (*draft).close, r.draft)
	case strict:
		*r.memory, err = newMemory(name, 0)
	default:
		return nil
	}
	runtime.AddCleanup(r, (*memory).close, r.memory)
	return err
}

// update takes what comes with a grant. While tasks here hold the lock, which they do then
// for reading, nothing may come that changes what they see.
func (r *replica) update(f *frame, limit int64, held int) error {
	if !r.opened || held > 0 && (f.version != r.version || f.ok || len(f.extents) > 0 || f.size != int64(r.memory.size())) {
		return fmt.Errorf("%w: a grant where there can be none", errFrame)
	}
	if f.size > limit {
		return fmt.Errorf("%d bytes are sent, where at most %d are allowed: %w", f.size, limit, ErrTooLarge)
	}
	size := int(f.size)
	if r.draft != nil {
		r.version = f.version
		return r.follow(f.ok, size)
	}
	if r.memory.size() != size {
		if err := r.memory.resize(size); err != nil {
			return err
		}
		r.journal = nil
	}
	if err := r.link.take(f, r.memory.bytes); err != nil {
		return err
	}
	if r.journal != nil && len(f.extents) > 0 {
		r.journal.wrote(r.memory.bytes, f.extents, f.version)
	}
	r.version = f.version
	return nil
}

// follow maps the memory as the owner has it, when that has moved.
func (r *replica) follow(moved bool, size int) error {
	if !moved && r.memory.size() != size {
		return fmt.Errorf("%w: memory of %d bytes has %d in its place", errFrame, r.memory.size(), size)
	}
	if !moved {
		return nil
	}
	file, err := r.link.fds.take()
	if err != nil {
		return err
	}
	r.memory.close()
	*r.memory = memory{file: file}
	if err := file.holds(size); err != nil {
		return err
	}
	protection := readOnly
	if r.draft.inPlace {
		protection = readWrite
	}
	r.memory.bytes, err = file.mmap(size, protection)
	return err
}

// beforeWrite makes sums of the data as it is, to find later what changed.
func (r *replica) beforeWrite(h *Handle) {
	if h.wrote {
		return
	}
	h.wrote = true
	if r.memory.size() <= blockSize {
		return
	}
	if r.journal == nil {
		r.journal = newJournal(r.memory.bytes, r.version)
	}
	if r.journal.unknown && r.journal.skip == 0 {
		r.journal.commit(r.memory.bytes, r.version)
	}
}

// changes describes what a writer did, and makes it the version of the replica.
func (r *replica) changes(f *frame) {
	data := r.memory.bytes
	f.ok, f.size = true, int64(len(data))
	r.version++
	if r.draft != nil {
		f.size, f.extents = int64(len(r.draft.bytes)), r.draft.changes(data, r.version)
		return
	}
	if r.journal == nil { // resized, or smaller than a block
		if len(data) > 0 {
			f.extents = []extent{{0, len(data)}}
		}
		return
	}
	r.journal.commit(data, r.version)
	f.extents = r.journal.since(len(data), r.version-1)
}

// send sends a release. The memory may be written again under the next grant,
// which can come before a large frame has left, so that is copied. A draft is
// written under the next write grant alone, which the owner gives when it has the frame.
func (r *replica) send(f frame) {
	if r.draft != nil {
		r.link.sendData(f, r.draft.bytes, func() { runtime.KeepAlive(r) })
		return
	}
	data := r.memory.bytes
	if n := f.dataLength(); n > inlineLimit {
		stable, at := make([]byte, len(data)), 0
		for _, e := range f.extents {
			at += copy(stable[e.offset:e.offset+e.length], data[e.offset:])
		}
		data = stable
	}
	r.link.sendData(f, data, nil)
}
