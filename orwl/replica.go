package orwl

import (
	"fmt"
	"runtime"

	"fairway/orwl/internal/memory"
	"fairway/orwl/internal/transport"
)

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
	if !r.opened || held > 0 && (f.Version != r.version || f.OK || len(f.Extents) > 0 || f.Size != int64(r.memory.Size())) {
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
