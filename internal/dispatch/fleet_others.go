package dispatch

import (
	"iter"
	"maps"

	"fairway/internal/taskqueue"
)

// Limits of what pilots may have told of copies that are of no version here: their names,
// and what they take in memory besides. Further ones are forgotten at once. The pilot then gets
// no advice when they may go, and decides that itself.
const (
	maxOthers      = 64 << 20  // bytes, of one pilot
	maxOthersInAll = 256 << 20 // of all
	otherWeight    = 160       // bytes that each takes besides its name, about
)

// others are the copies in a pilot's cache that are, so far, none of a committed version,
// with their sizes.
type others struct {
	sizes map[taskqueue.FileRef]int64
	bytes int64  // that they take
	inAll *int64 // with those of the other pilots
}

func newOthers(inAll *int64) others {
	return others{sizes: make(map[taskqueue.FileRef]int64), inAll: inAll}
}

func weightOf(r taskqueue.FileRef) int64 { return int64(len(r.LFN)) + otherWeight }

// fits reports whether there is room for another one that a pilot tells of.
func (o *others) fits(r taskqueue.FileRef) bool {
	w := weightOf(r)
	return o.bytes+w <= maxOthers && *o.inAll+w <= maxOthersInAll
}

func (o *others) has(r taskqueue.FileRef) bool {
	_, ok := o.sizes[r]
	return ok
}

func (o *others) set(r taskqueue.FileRef, size int64) {
	if !o.has(r) {
		o.bytes += weightOf(r)
		*o.inAll += weightOf(r)
	}
	o.sizes[r] = size
}

// take removes one, and returns its size; ok is false if there was none.
func (o *others) take(r taskqueue.FileRef) (size int64, ok bool) {
	if size, ok = o.sizes[r]; ok {
		delete(o.sizes, r)
		o.bytes -= weightOf(r)
		*o.inAll -= weightOf(r)
	}
	return size, ok
}

func (o *others) clear() {
	*o.inAll -= o.bytes
	o.bytes = 0
	clear(o.sizes)
}

// all yields the copies; one that was yielded may be taken.
func (o *others) all() iter.Seq2[taskqueue.FileRef, int64] { return maps.All(o.sizes) }
