// Package copies counts the copies in pilots' caches that are of no version which is known, within the memory that
// such names may take.
package copies

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"fairway/internal/taskqueue"
)

// Limits of what pilots may have told of copies that are of no version here: their names,
// and what they take in memory besides. Further ones are forgotten at once. The pilot then gets
// no advice when they may go, and decides that itself.
const (
	Most      = 64 << 20  // bytes, of one pilot
	MostInAll = 256 << 20 // of all
	weight    = 160       // bytes that each takes besides its name, about
)

// Others are the copies in a pilot's cache that are, so far, none of a committed version,
// with their sizes.
type Others struct {
	sizes map[taskqueue.FileRef]int64
	bytes int64  // that they take
	inAll *int64 // with those of the other pilots
}

// NewOthers are those of one more pilot; inAll is what those of all pilots take.
func NewOthers(inAll *int64) Others {
	return Others{sizes: make(map[taskqueue.FileRef]int64), inAll: inAll}
}

func weightOf(r taskqueue.FileRef) int64 { return int64(len(r.LFN)) + weight }

// Fits reports whether there is room for another one that a pilot tells of.
func (o *Others) Fits(r taskqueue.FileRef) bool {
	w := weightOf(r)
	return o.bytes+w <= Most && *o.inAll+w <= MostInAll
}

// Has reports whether the copy is one.
func (o *Others) Has(r taskqueue.FileRef) bool {
	_, ok := o.sizes[r]
	return ok
}

// Set adds one, or tells its size anew, whether it fits or not.
func (o *Others) Set(r taskqueue.FileRef, size int64) {
	if !o.Has(r) {
		o.count(weightOf(r))
	}
	o.sizes[r] = size
}

// Take removes one, and returns its size; ok is false if there was none.
func (o *Others) Take(r taskqueue.FileRef) (size int64, ok bool) {
	if size, ok = o.sizes[r]; ok {
		delete(o.sizes, r)
		o.count(-weightOf(r))
	}
	return size, ok
}

// Clear removes all.
func (o *Others) Clear() {
	o.count(-o.bytes)
	clear(o.sizes)
}

func (o *Others) count(more int64) {
	o.bytes += more
	*o.inAll += more
}

// All yields the copies; one that was yielded may be taken.
func (o *Others) All() iter.Seq2[taskqueue.FileRef, int64] { return maps.All(o.sizes) }

// Without returns those that are not kept, the largest first.
func (o *Others) Without(kept func(taskqueue.FileRef) bool) []taskqueue.FileRef {
	list := slices.DeleteFunc(slices.Collect(maps.Keys(o.sizes)), kept)
	slices.SortFunc(list, func(a, b taskqueue.FileRef) int {
		return cmp.Or(cmp.Compare(o.sizes[b], o.sizes[a]), a.Compare(b))
	})
	return list
}
