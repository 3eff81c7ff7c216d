// Package eviction chooses which file of a cache goes next when there is no room (paper 3,
// section IV-B). It is passive: no goroutine, clock, I/O or random source, and the same calls
// give the same choice.
//
// The caches of nodes and those of the simulator go by it.
package eviction

import (
	"cmp"
	"container/list"
	"fmt"
	"iter"
	"slices"
)

// Policy names a rule by which a cache gives up files.
type Policy string

// The policies. NextUse follows the order that the TaskQueue sends (Answer.Evict of
// taskqueue) and falls back to LRU for what it does not name; it is the default. The
// others know the past only.
const (
	FIFO     Policy = "fifo"      // the file that came first
	LRU      Policy = "lru"       // the file unused for longest
	LFU      Policy = "lfu"       // the file used least often
	LRUK     Policy = "lru-k"     // the file whose last use but one is farthest back (O'Neil 1993, K=2)
	LFUStar  Policy = "lfu-star"  // LFU among files used once; if those do not suffice, the new file stays out (Arlitt 1996)
	LFUAging Policy = "lfu-aging" // LFU, all counts halved when they exceed 10 on average (Arlitt 1996)
	LCBK     Policy = "lcb-k"     // the file with the least cost saved per byte and time, from its last K=2 uses (Otoo 2002)
	NextUse  Policy = "next-use"
)

// Policies are all of them, in the order in which tables show them. The last is the default.
var Policies = []Policy{FIFO, LRU, LFU, LRUK, LFUStar, LFUAging, LCBK, NextUse}

const (
	lastUses    = 2  // K of LRU-K and LCB-K
	agingWeight = 10 // average count at which LFUAging halves
)

// Order is the order in which the files of one cache go under a policy: it remembers how
// they were used. F names a file. It is passive and not safe for concurrent use. The caller
// keeps the books on space; an order holds no more than the caller stores in it.
type Order[F comparable] struct {
	policy Policy
	clock  uint64 // counts stores and uses
	uses   int    // sum of the counts
	files  map[F]*list.Element
	recent *list.List // of *stored[F], the least recently used in front

	// What the TaskQueue sent: files in the order in which they may go. Those before stale go
	// first under every policy. places says where a file stands in told for the first time.
	told   []F
	stale  int
	places map[F]int
}

type stored[F comparable] struct {
	file  F
	size  int64
	cost  float64 // to bring the file back, in any unit that is the same for all
	since uint64
	count int
	last  [lastUses]uint64 // most recent first; 0: not used so often
}

// New returns an order without files under a policy, or an error that names the policies
// there are.
func New[F comparable](p Policy) (*Order[F], error) {
	if !slices.Contains(Policies, p) {
		return nil, fmt.Errorf("eviction policy %q is unknown; known are %v", p, Policies)
	}
	return &Order[F]{policy: p, files: map[F]*list.Element{}, recent: list.New(), places: map[F]int{}}, nil
}

// Store adds a file; storing counts as its first use.
func (o *Order[F]) Store(f F, size int64, cost float64) {
	if o.files[f] != nil {
		o.Use(f)
		return
	}
	o.clock++
	o.uses++
	o.files[f] = o.recent.PushBack(&stored[F]{
		file: f, size: size, cost: cost, since: o.clock, count: 1, last: [lastUses]uint64{o.clock},
	})
	o.age()
}

// Use says that a job reads the file.
func (o *Order[F]) Use(f F) {
	element := o.files[f]
	if element == nil {
		return
	}
	o.clock++
	o.uses++
	e := element.Value.(*stored[F])
	e.count++
	copy(e.last[1:], e.last[:])
	e.last[0] = o.clock
	o.recent.MoveToBack(element)
	o.age()
}

// age halves the counts of LFUAging, so that what was popular long ago does
// not stay for ever.
func (o *Order[F]) age() {
	if o.policy != LFUAging || o.uses <= agingWeight*len(o.files) {
		return
	}
	o.uses = 0
	for f := range o.all() {
		f.count = (f.count + 1) / 2
		o.uses += f.count
	}
}

func (o *Order[F]) all() iter.Seq[*stored[F]] {
	return func(yield func(*stored[F]) bool) {
		for e := o.recent.Front(); e != nil; e = e.Next() {
			if !yield(e.Value.(*stored[F])) {
				return
			}
		}
	}
}

// Drop takes a file out: it has left the cache.
func (o *Order[F]) Drop(f F) {
	if element := o.files[f]; element != nil {
		o.uses -= element.Value.(*stored[F]).count
		o.recent.Remove(element)
		delete(o.files, f)
	}
}

// Follow sets the order that the TaskQueue sent, which NextUse goes by. Under every policy
// the first stale files of it go first: however often a copy was used that nobody may read
// any more, it is of no use.
func (o *Order[F]) Follow(order []F, stale int) {
	o.told = slices.Clone(order)
	o.stale = max(0, min(stale, len(order)))
	clear(o.places)
	for i, f := range o.told {
		if _, named := o.places[f]; !named {
			o.places[f] = i
		}
	}
}

// Going yields the files in the order in which they may go, without those that the policy
// does not give up. The order must not be changed meanwhile; it is the caller that drops
// what it removes. The first files come in constant time under LRU, and under NextUse after
// what the TaskQueue named; other policies sort all of them.
func (o *Order[F]) Going() iter.Seq[F] {
	return func(yield func(F) bool) {
		switch {
		case o.policy == NextUse:
			o.goAsTold(yield)
		case o.policy == LRU && o.stale == 0:
			for f := range o.all() {
				if !yield(f.file) {
					return
				}
			}
		default:
			for _, f := range slices.SortedFunc(o.all(), o.compare) {
				if !o.stays(f) && !yield(f.file) {
					return
				}
			}
		}
	}
}

// goAsTold yields what the TaskQueue named, in its order, and then the others, the least
// recently used first.
func (o *Order[F]) goAsTold(yield func(F) bool) {
	for i, f := range o.told {
		if o.files[f] != nil && o.places[f] == i && !yield(f) {
			return
		}
	}
	for f := range o.all() {
		if _, named := o.places[f.file]; !named && !yield(f.file) {
			return
		}
	}
}

// stays reports whether the policy gives up no file like this one.
func (o *Order[F]) stays(f *stored[F]) bool {
	return o.policy == LFUStar && f.count > 1 && !o.unread(f)
}

func (o *Order[F]) unread(f *stored[F]) bool {
	place, named := o.places[f.file]
	return named && place < o.stale
}

// compare is negative if a goes before b, under a policy that knows the past only. Each falls
// back to LRU, whose clock is never equal, so the order is total.
func (o *Order[F]) compare(a, b *stored[F]) int {
	if x, y := o.unread(a), o.unread(b); x != y {
		if x {
			return -1
		}
		return 1
	}
	first := 0
	switch o.policy {
	case FIFO:
		first = cmp.Compare(a.since, b.since)
	case LFU, LFUAging:
		first = cmp.Compare(a.count, b.count)
	case LRUK:
		first = cmp.Compare(a.last[lastUses-1], b.last[lastUses-1])
	case LCBK:
		first = cmp.Compare(o.benefit(a), o.benefit(b))
	}
	return cmp.Or(first, cmp.Compare(a.last[0], b.last[0]))
}

// benefit is the cost that keeping a file saves per byte and unit of time.
func (o *Order[F]) benefit(f *stored[F]) float64 {
	k := min(f.count, lastUses)
	age := float64(o.clock + 1 - f.last[k-1])
	return float64(k) / age * f.cost / float64(max(f.size, 1))
}
