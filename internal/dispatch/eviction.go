package dispatch

import (
	"cmp"
	"fmt"
	"slices"
)

// EvictionPolicy names a rule by which a cache gives up files (paper 3,
// section IV-B).
type EvictionPolicy string

// The policies. NextUse follows the order that the TaskQueue sends
// ([Answer.Evict]) and falls back to LRU for what it does not name; it is the
// default. The others know the past only.
const (
	FIFO     EvictionPolicy = "fifo"      // the file that came first
	LRU      EvictionPolicy = "lru"       // the file unused for longest
	LFU      EvictionPolicy = "lfu"       // the file used least often
	LRUK     EvictionPolicy = "lru-k"     // the file whose last use but one is farthest back (O'Neil 1993, K=2)
	LFUStar  EvictionPolicy = "lfu-star"  // LFU among files used once; if those do not suffice, the new file stays out (Arlitt 1996)
	LFUAging EvictionPolicy = "lfu-aging" // LFU, all counts halved when they exceed 10 on average (Arlitt 1996)
	LCBK     EvictionPolicy = "lcb-k"     // the file with the least cost saved per byte and time, from its last K=2 uses (Otoo 2002)
	NextUse  EvictionPolicy = "next-use"
)

// EvictionPolicies are all of them, in the order in which tables show them.
var EvictionPolicies = []EvictionPolicy{FIFO, LRU, LFU, LRUK, LFUStar, LFUAging, LCBK, NextUse}

const (
	lastUses    = 2  // K of LRU-K and LCB-K
	agingWeight = 10 // average count at which LFUAging halves
)

// Shelf remembers how the files of one cache were used, and says which goes
// next. It is passive and not safe for concurrent use. The caller keeps the
// books on space; a shelf holds no more than the caller stores in it.
//
// Only the simulator uses it, to compare the policies. The cache of a node goes by
// cache.LRU with SetHints, which chooses what a shelf under NextUse chooses: a test of
// package sim compares them.
type Shelf struct {
	policy EvictionPolicy
	clock  uint64 // counts stores and uses
	uses   int    // sum of the counts
	at     map[FileRef]int
	files  []shelved
	order  map[FileRef]int // of NextUse; where each file stands in it is its place
	stale  int             // what stands before this place in it goes first under every policy
}

type shelved struct {
	file   FileRef
	size   int64
	cost   float64 // to bring the file back, in any unit that is the same for all
	stored uint64
	count  int
	place  int              // in the order that the TaskQueue sent; behind it if that does not name the file
	last   [lastUses]uint64 // most recent first; 0: not used so often
}

// NewShelf returns an empty shelf under a policy, or an error that names the
// policies there are.
func NewShelf(p EvictionPolicy) (*Shelf, error) {
	if !slices.Contains(EvictionPolicies, p) {
		return nil, fmt.Errorf("eviction policy %q is unknown; known are %v", p, EvictionPolicies)
	}
	return &Shelf{policy: p, at: map[FileRef]int{}, order: map[FileRef]int{}}, nil
}

// Store puts a file on the shelf; storing counts as its first use.
func (s *Shelf) Store(f FileRef, size int64, cost float64) {
	if _, ok := s.at[f]; ok {
		s.Use(f)
		return
	}
	s.clock++
	s.uses++
	s.at[f] = len(s.files)
	s.files = append(s.files, shelved{file: f, size: size, cost: cost, stored: s.clock, count: 1, place: s.place(f), last: [lastUses]uint64{s.clock}})
	s.age()
}

// Use says that a job reads the file.
func (s *Shelf) Use(f FileRef) {
	i, ok := s.at[f]
	if !ok {
		return
	}
	s.clock++
	s.uses++
	e := &s.files[i]
	e.count++
	copy(e.last[1:], e.last[:])
	e.last[0] = s.clock
	s.age()
}

// age halves the counts of LFUAging, so that what was popular long ago does
// not stay for ever.
func (s *Shelf) age() {
	if s.policy != LFUAging || s.uses <= agingWeight*len(s.files) {
		return
	}
	s.uses = 0
	for i := range s.files {
		s.files[i].count = (s.files[i].count + 1) / 2
		s.uses += s.files[i].count
	}
}

// Drop takes a file off the shelf.
func (s *Shelf) Drop(f FileRef) {
	i, ok := s.at[f]
	if !ok {
		return
	}
	s.uses -= s.files[i].count
	last := len(s.files) - 1
	s.files[i] = s.files[last]
	s.at[s.files[i].file] = i
	s.files = s.files[:last]
	delete(s.at, f)
}

// Follow sets the order of NextUse, as [Answer.Evict] says it. Under every
// policy so many files at its front go first as [Answer.Stale] says: however
// often a copy was used that nobody may read any more, it is of no use.
func (s *Shelf) Follow(order []FileRef, stale int) {
	clear(s.order)
	s.stale = stale
	for i, f := range order {
		s.order[f] = i
	}
	for i := range s.files {
		s.files[i].place = s.place(s.files[i].file)
	}
}

// Victim returns the file that goes next among those that may go, or false if
// none does. It is the caller that drops it.
func (s *Shelf) Victim(may func(FileRef) bool) (FileRef, bool) {
	best := -1
	for i := range s.files {
		f := &s.files[i]
		if !s.stays(f) && (best < 0 || s.before(f, &s.files[best])) && may(f.file) {
			best = i
		}
	}
	if best < 0 {
		return FileRef{}, false
	}
	return s.files[best].file, true
}

// stays reports whether the policy gives up no file like this one.
func (s *Shelf) stays(f *shelved) bool {
	return s.policy == LFUStar && f.count > 1 && !s.unread(f)
}

// unread reports whether nobody may read the file.
func (s *Shelf) unread(f *shelved) bool { return f.place < s.stale }

// before reports whether a goes before b. Every policy falls back to LRU, whose
// clock is never equal, so the order is total.
func (s *Shelf) before(a, b *shelved) bool {
	if x, y := s.unread(a), s.unread(b); x != y {
		return x
	}
	switch s.policy {
	case FIFO:
		return a.stored < b.stored
	case LFU, LFUAging:
		if a.count != b.count {
			return a.count < b.count
		}
	case LRUK:
		if x, y := a.last[lastUses-1], b.last[lastUses-1]; x != y {
			return x < y
		}
	case LCBK:
		if x, y := s.benefit(a), s.benefit(b); x != y {
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
func (s *Shelf) benefit(f *shelved) float64 {
	k := min(f.count, lastUses)
	since := float64(s.clock + 1 - f.last[k-1])
	return float64(k) / since * f.cost / float64(max(f.size, 1))
}

func (s *Shelf) place(f FileRef) int {
	if p, ok := s.order[f]; ok {
		return p
	}
	return len(s.order)
}

// NextRead is when a file of a cache is read next, for [NextUseOrder].
type NextRead struct {
	File FileRef
	Size int64
	Read bool   // some job will read it
	Rank uint64 // of the first job that does, in the expected order
	Last bool   // and its cache could get it from no other
}

// NextUseOrder puts the files of one cache in the order in which they may go
// when the future is known: first those that nobody will read, the largest
// first; then the one whose next reader stands farthest behind in the
// expected order. Last copies come behind all others. Files of equal standing go
// in the order of their names, so that the result does not depend on the order
// of the argument, which is sorted in place.
func NextUseOrder(files []NextRead) {
	slices.SortFunc(files, func(a, b NextRead) int {
		switch {
		case a.Last != b.Last:
			if a.Last {
				return 1
			}
			return -1
		case a.Read != b.Read:
			if a.Read {
				return 1
			}
			return -1
		case a.Read && a.Rank != b.Rank:
			return cmp.Compare(b.Rank, a.Rank)
		case a.Size != b.Size:
			return cmp.Compare(b.Size, a.Size)
		}
		return a.File.compare(b.File)
	})
}
