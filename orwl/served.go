package orwl

import (
	"fmt"

	"fairway/orwl/internal/memory"
)

// This is the boundary between locks and what carries them to other processes. A session
// puts a Handle into the queue for each request of the other process, with a servedRequest
// that is told when its fate is decided, and uses of a Location only:
//
//   - insertRanked, cycle, release, withdraw, and reserve of localOwner: what a task
//     of this process may do too;
//   - holds, failure: what became of a request;
//   - lackedBy, overwrite: the data, under a grant;
//   - lose, missAtStart: the end of the other process.
//
// The other side of it is Resource: a Mirror stands for a Location and uses of a Handle what
// a Location uses.

// servedRequest is what a request has that stands in the queue for a task of another
// process.
type servedRequest struct {
	decided func()          // called instead of sending a token
	by      string          // whose release led to the grant
	pieces  []memory.Extent // what the writer changed
}

// failure says why h has lost its request, if it has.
func (l *Location) failure(h *Handle) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.state == failed {
		return h.err
	}
	return nil
}

// lackedBy returns the data as it is under a grant that was just given, its version and its
// file, and what a mirror of another process lacks of it.
func (l *Location) lackedBy(sub *subscription) (data []byte, version uint64, file *memory.File, lacks []memory.Extent) {
	data, file = l.memory.Bytes, l.memory.File
	l.lock()
	if l.journal == nil && !sub.mapped {
		l.journal = memory.NewJournal(data, l.version.Load())
	}
	version, j := l.version.Load(), l.journal
	l.mu.Unlock()
	switch {
	case sub.mapped:
	case !sub.has && len(data) > 0:
		lacks = []memory.Extent{{Offset: 0, Length: len(data)}}
	case sub.version != version:
		lacks = j.Since(len(data), sub.version)
	}
	return data, version, file, lacks
}

// overwrite lets h, which holds the lock for a writer of another process, make the version
// that its release completes: of a size, with pieces of new data one after the other. It
// returns the number of that version.
func (l *Location) overwrite(h *Handle, size int, pieces []memory.Extent, data []byte, inPlace bool) (version uint64, err error) {
	if err := l.memory.Resize(size); err != nil {
		return 0, fmt.Errorf("resizing location %s: %w", l.name, err)
	}
	for _, e := range pieces {
		data = data[copy(l.memory.Bytes[e.Offset:e.Offset+e.Length], data):]
	}
	if !inPlace { // otherwise what changed is found by comparing
		h.served.pieces = append([]memory.Extent{}, pieces...)
	}
	h.mapped, h.wrote = true, true
	return l.version.Load() + 1, nil
}
