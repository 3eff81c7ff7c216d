package distribution

import (
	"fmt"
	"runtime"

	"fairway/lib/fifo"
	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
)

// Replica is the data of a mirror, for as long as one connection lasts. A task
// that still holds a lock of a connection that was lost keeps the replica of that
// time, and so cannot disturb those that go on.
//
// It changes while no request is granted, or under the write lock; the
// goroutine that reads the connection hands it over with a grant.
type Replica struct {
	Link    *transport.Link
	opened  bool          // for who has the right to read
	Held    int           // requests that are granted, under the lock of the peer
	Limit   int64         // bytes that Resize may give it
	Draft   *memory.Draft // where the memory is the owner's
	Memory  *memory.Region
	Version uint64
	journal *memory.Journal
}

// NewReplica returns that of a connection that was made.
func NewReplica(l *transport.Link) *Replica { return &Replica{Link: l, Memory: new(memory.Region)} }

// Opens takes what the owner says of the location. The memory of a file is given
// back when nobody refers to the replica any more.
func (r *Replica) Opens(f *transport.Frame, name string, strict bool) (err error) {
	if r.opened {
		return fmt.Errorf("%w: location %s is opened twice", transport.ErrMalformed, name)
	}
	r.opened, r.Limit = true, f.Size
	switch {
	case f.OK:
		r.Draft = &memory.Draft{InPlace: f.Mode == fifo.Write}
		runtime.AddCleanup(r, (*memory.Draft).Close, r.Draft)
	case strict:
		*r.Memory, err = memory.NewInFile(name, 0)
	default:
		return nil
	}
	runtime.AddCleanup(r, (*memory.Region).Close, r.Memory)
	return err
}

// Update takes what comes with a grant. While tasks here hold the lock, which they do then
// for reading, nothing may come that changes what they see.
func (r *Replica) Update(f *transport.Frame, limit int64, held int) error {
	if !r.opened || held > 0 && (f.Version != r.Version || f.OK || len(f.Extents) > 0 ||
		f.Size != int64(r.Memory.Size())) {
		return fmt.Errorf("%w: a grant where there can be none", transport.ErrMalformed)
	}
	if f.Size > limit {
		return fmt.Errorf("%d bytes are sent, where at most %d are allowed: %w", f.Size, limit, ErrTooLarge)
	}
	size := int(f.Size)
	if r.Draft != nil {
		r.Version = f.Version
		return r.follow(f.OK, size)
	}
	if r.Memory.Size() != size {
		if err := r.Resize(size); err != nil {
			return err
		}
	}
	if err := r.Link.ReadInto(r.Memory.Bytes); err != nil {
		return err
	}
	if r.journal != nil && len(f.Extents) > 0 {
		r.journal.Wrote(r.Memory.Bytes, f.Extents, f.Version)
	}
	r.Version = f.Version
	return nil
}

// Resize gives it another size, so that all of it counts as changed.
func (r *Replica) Resize(size int) error {
	r.journal = nil
	return r.Memory.Resize(size)
}

// follow maps the memory as the owner has it, when that has moved.
func (r *Replica) follow(moved bool, size int) error {
	if !moved && r.Memory.Size() != size {
		return fmt.Errorf("%w: memory of %d bytes has %d in its place", transport.ErrMalformed, r.Memory.Size(), size)
	}
	if !moved {
		return nil
	}
	fd, err := r.Link.TakeDescriptor()
	if err != nil {
		return err
	}
	r.Memory.Close()
	*r.Memory, err = memory.Receive(fd, size, r.Draft.InPlace)
	return err
}

// BeforeWrite makes sums of the data as it is, to find later what changed.
func (r *Replica) BeforeWrite() {
	if !memory.WorthAJournal(r.Memory.Bytes) {
		return
	}
	if r.journal == nil {
		r.journal = memory.NewJournal(r.Memory.Bytes, r.Version)
	}
	r.journal.Before(r.Memory.Bytes, r.Version)
}

// Changes describes what a writer did, and makes it the version of the replica.
func (r *Replica) Changes(f *transport.Frame) {
	data := r.Memory.Bytes
	f.OK, f.Size = true, int64(len(data))
	r.Version++
	if r.Draft != nil {
		f.Size, f.Extents = int64(len(r.Draft.Bytes)), r.Draft.Changes(data, r.Version)
		return
	}
	if r.journal == nil { // resized, or smaller than a block
		if len(data) > 0 {
			f.Extents = []memory.Extent{{Offset: 0, Length: len(data)}}
		}
		return
	}
	r.journal.Commit(data, r.Version)
	f.Extents = r.journal.Since(len(data), r.Version-1)
}

// Send sends a release. The memory may be written again under the next grant,
// which can come before a large frame has left, so that is copied. A draft is
// written under the next write grant alone, which the owner gives when it has the frame.
func (r *Replica) Send(f transport.Frame) {
	if r.Draft != nil {
		r.Link.SendData(f, r.Draft.Bytes, func() { runtime.KeepAlive(r) })
		return
	}
	data := r.Memory.Bytes
	if n := f.DataLength(); n > transport.InlineLimit {
		stable, at := make([]byte, len(data)), 0
		for _, e := range f.Extents {
			at += copy(stable[e.Offset:e.Offset+e.Length], data[e.Offset:])
		}
		data = stable
	}
	r.Link.SendData(f, data, nil)
}
