package orwl

import (
	"context"
	"fmt"

	"fairway/lib/orwl/internal/distribution"
	"fairway/lib/orwl/internal/memory"
)

// This is the boundary between locks and what carries them to other processes: a session of package
// distribution puts a Handle into the queue for each request of the other process, and uses what is
// here. The other side of it is Resource: a Mirror stands for a Location and uses of a Handle what a
// Location uses.

// servedLocations are those of a server, as sessions see them.
type servedLocations struct{ *Server }

func (s servedLocations) Find(name string) (distribution.Location, error) {
	l, err := s.location(name)
	return servedLocation{l}, err
}

func (s servedLocations) Reserve(ctx context.Context, all []distribution.Wanted) (func(keep bool), error) {
	postings := make([]Posting, 0, len(all))
	for _, w := range all {
		r := w.Request.(*servedRequest)
		postings = append(postings, Posting{handle: &r.handle, resource: r.location, mode: w.Mode, Rank: w.Rank})
	}
	made, err := localOwner{}.reserve(ctx, postings)
	if err != nil {
		return nil, err
	}
	return made.settle, nil
}

// servedLocation is a location as sessions see it.
type servedLocation struct{ *Location }

func (l servedLocation) Number() uint64                 { return l.id }
func (l servedLocation) Size() int                      { return l.memory.Size() }
func (l servedLocation) Mapped() (shared, inPlace bool) { return l.shared, l.writesInPlace() }
func (l servedLocation) Refuse(err error) error         { return l.refuse(err) }

func (l servedLocation) Request(task string, decided func()) distribution.Request {
	r := &servedRequest{location: l.Location, decided: decided}
	r.handle.Name, r.handle.served = task, r
	return r
}

// servedRequest stands in the queue for a task of another process.
type servedRequest struct {
	handle   Handle
	location *Location
	decided  func()          // called instead of sending a token
	by       string          // whose release led to the grant
	pieces   []memory.Extent // what the writer changed
}

func (r *servedRequest) Insert(m Mode, rank int) error {
	return r.location.insertRanked(&r.handle, m, rank)
}

func (r *servedRequest) Cycle(next distribution.Request) error {
	return r.location.cycle(&r.handle, &next.(*servedRequest).handle)
}

func (r *servedRequest) Release() error     { return r.location.release(&r.handle) }
func (r *servedRequest) Withdraw() bool     { return r.location.withdraw(&r.handle) }
func (r *servedRequest) Holds() bool        { return r.location.holds(&r.handle) }
func (r *servedRequest) Writes() bool       { return r.handle.mode == Write }
func (r *servedRequest) Generation() uint64 { return r.handle.generation }
func (r *servedRequest) By() string         { return r.by }
func (r *servedRequest) Lose(inPlace bool)  { r.location.lose(&r.handle, inPlace) }
func (r *servedRequest) MissAtStart()       { r.location.missAtStart(&r.handle) }

func (r *servedRequest) Failure() error {
	r.location.mu.Lock()
	defer r.location.mu.Unlock()
	if r.handle.state == failed {
		return r.handle.err
	}
	return nil
}

func (l servedLocation) Lacked(had bool, hadVersion uint64, mapped bool) (
	data []byte, version uint64, file *memory.File, lacks []memory.Extent,
) {
	data, file = l.memory.Bytes, l.memory.File
	l.lock()
	if l.journal == nil && !mapped {
		l.journal = memory.NewJournal(data, l.version.Load())
	}
	version, j := l.version.Load(), l.journal
	l.mu.Unlock()
	switch {
	case mapped:
	case !had && len(data) > 0:
		lacks = []memory.Extent{{Offset: 0, Length: len(data)}}
	case hadVersion != version:
		lacks = j.Since(len(data), hadVersion)
	}
	return data, version, file, lacks
}

func (r *servedRequest) Overwrite(
	size int, pieces []memory.Extent, data []byte, inPlace bool,
) (version uint64, err error) {
	l, h := r.location, &r.handle
	if err := l.memory.Resize(size); err != nil {
		return 0, fmt.Errorf("resizing location %s: %w", l.name, err)
	}
	for _, e := range pieces {
		data = data[copy(l.memory.Bytes[e.Offset:e.Offset+e.Length], data):]
	}
	if !inPlace { // otherwise what changed is found by comparing
		r.pieces = append([]memory.Extent{}, pieces...)
	}
	h.mapped, h.wrote = true, true
	return l.version.Load() + 1, nil
}
