// Package eviction chooses which file of a cache goes next when there is no room (paper 3,
// section IV-B). It is passive: no goroutine, clock, I/O or random source, and the same calls
// give the same choice.
//
// The caches of the simulator go by it, to compare the policies. The cache of a node goes by
// cache.LRU with SetHints, which chooses what [NextUse] chooses: a test of package sim
// compares them.
package eviction

import (
	"fmt"
	"slices"
)

// Policy names a rule by which a cache gives up files.
type Policy string

// The policies. NextUse follows the order that the TaskQueue sends (Answer.Evict of
// dispatch) and falls back to LRU for what it does not name; it is the default. The
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

// Policies are all of them, in the order in which tables show them.
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
	at     map[F]int
	files  []stored[F]
	told   map[F]int // the order that the TaskQueue sent; where each file stands in it is its place
	stale  int       // what stands before this place in it goes first under every policy
}

type stored[F comparable] struct {
	file  F
	size  int64
	cost  float64 // to bring the file back, in any unit that is the same for all
	since uint64
	count int
	place int              // in the order that the TaskQueue sent; behind it if that does not name the file
	last  [lastUses]uint64 // most recent first; 0: not used so often
}

// New returns an order without files under a policy, or an error that names the policies
// there are.
func New[F comparable](p Policy) (*Order[F], error) {
	if !slices.Contains(Policies, p) {
		return nil, fmt.Errorf("eviction policy %q is unknown; known are %v", p, Policies)
	}
	return &Order[F]{policy: p, at: map[F]int{}, told: map[F]int{}}, nil
}

// Store adds a file; storing counts as its first use.
func (o *Order[F]) Store(f F, size int64, cost float64) {
	if _, ok := o.at[f]; ok {
		o.Use(f)
		return
	}
	o.clock++
	o.uses++
	o.at[f] = len(o.files)
	o.files = append(o.files, stored[F]{
		file: f, size: size, cost: cost, since: o.clock, count: 1, place: o.place(f), last: [lastUses]uint64{o.clock},
	})
	o.age()
}

// Use says that a job reads the file.
func (o *Order[F]) Use(f F) {
	i, ok := o.at[f]
	if !ok {
		return
	}
	o.clock++
	o.uses++
	e := &o.files[i]
	e.count++
	copy(e.last[1:], e.last[:])
	e.last[0] = o.clock
	o.age()
}

// age halves the counts of LFUAging, so that what was popular long ago does
// not stay for ever.
func (o *Order[F]) age() {
	if o.policy != LFUAging || o.uses <= agingWeight*len(o.files) {
		return
	}
	o.uses = 0
	for i := range o.files {
		o.files[i].count = (o.files[i].count + 1) / 2
		o.uses += o.files[i].count
	}
}

// Drop takes a file out: it has left the cache.
func (o *Order[F]) Drop(f F) {
	i, ok := o.at[f]
	if !ok {
		return
	}
	o.uses -= o.files[i].count
	last := len(o.files) - 1
	o.files[i] = o.files[last]
	o.at[o.files[i].file] = i
	o.files = o.files[:last]
	delete(o.at, f)
}

// Follow sets the order that the TaskQueue sent, which NextUse goes by. Under every policy
// the first stale files of it go first: however often a copy was used that nobody may read
// any more, it is of no use.
func (o *Order[F]) Follow(order []F, stale int) {
	clear(o.told)
	o.stale = stale
	for i, f := range order {
		o.told[f] = i
	}
	for i := range o.files {
		o.files[i].place = o.place(o.files[i].file)
	}
}

// First returns the file that goes first among those that may go, or false if none does.
// It is the caller that drops it.
func (o *Order[F]) First(may func(F) bool) (first F, ok bool) {
	best := -1
	for i := range o.files {
		f := &o.files[i]
		if !o.stays(f) && (best < 0 || o.before(f, &o.files[best])) && may(f.file) {
			best = i
		}
	}
	if best < 0 {
		return first, false
	}
	return o.files[best].file, true
}

// stays reports whether the policy gives up no file like this one.
func (o *Order[F]) stays(f *stored[F]) bool {
	return o.policy == LFUStar && f.count > 1 && !o.unread(f)
}

// unread reports whether nobody may read the file.
func (o *Order[F]) unread(f *stored[F]) bool { return f.place < o.stale }

// before reports whether a goes before b. Every policy falls back to LRU, whose
// clock is never equal, so the order is total.
func (o *Order[F]) before(a, b *stored[F]) bool {
	if x, y := o.unread(a), o.unread(b); x != y {
		return x
	}
	switch o.policy {
	case FIFO:
		return a.since < b.since
	case LFU, LFUAging:
		if a.count != b.count {
			return a.count < b.count
		}
	case LRUK:
		if x, y := a.last[lastUses-1], b.last[lastUses-1]; x != y {
			return x < y
		}
	case LCBK:
		if x, y := o.benefit(a), o.benefit(b); x != y {
			return x < y
		}
	case NextUse:
		if a.place != b.place {
			return a.place < b.place
		}
	}
	return a.last[0] < b.last[0]
}

// benefit is the cost that keeping a file saves per byte and unit of time.
func (o *Order[F]) benefit(f *stored[F]) float64 {
	k := min(f.count, lastUses)
	age := float64(o.clock + 1 - f.last[k-1])
	return float64(k) / age * f.cost / float64(max(f.size, 1))
}

func (o *Order[F]) place(f F) int {
	if p, ok := o.told[f]; ok {
		return p
	}
	return len(o.told)
}
