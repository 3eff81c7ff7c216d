package cache

import (
	"container/list"
	"iter"
	"slices"
)

// Policy chooses which files go first. The cache calls it under its lock, so
// it must not block nor call the cache. Only files that the policy was told of
// as used, and not as gone since, may be in its order.
type Policy interface {
	// Used says that a file was added or taken into use.
	Used(Ref)
	// Gone says that a file has left the cache.
	Gone(Ref)
	// SetHints gives the order of the TaskQueue, which knows who will read a file
	// next; empty where it gives none.
	SetHints([]Ref)
	// Order yields files in the order in which they may go. It is not changed
	// while it yields.
	Order() iter.Seq[Ref]
}

// LRU is the least recently used file first (paper 3, section IV-B), after
// the eviction hints of the TaskQueue, in their order.
type LRU struct {
	recent *list.List // of Ref, the least recently used in front
	at     map[Ref]*list.Element
	hints  []Ref
}

// NewLRU returns a policy without files.
func NewLRU() *LRU { return &LRU{recent: list.New(), at: map[Ref]*list.Element{}} }

// Used is part of Policy.
func (l *LRU) Used(ref Ref) {
	if e := l.at[ref]; e != nil {
		l.recent.MoveToBack(e)
		return
	}
	l.at[ref] = l.recent.PushBack(ref)
}

// Gone is part of Policy.
func (l *LRU) Gone(ref Ref) {
	if e := l.at[ref]; e != nil {
		l.recent.Remove(e)
		delete(l.at, ref)
	}
}

// SetHints is part of Policy.
func (l *LRU) SetHints(order []Ref) { l.hints = slices.Clone(order) }

// Order is part of Policy.
func (l *LRU) Order() iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		named := make(map[Ref]bool, len(l.hints))
		for _, ref := range l.hints {
			if l.at[ref] != nil && !named[ref] && !yield(ref) {
				return
			}
			named[ref] = true
		}
		for e := l.recent.Front(); e != nil; e = e.Next() {
			if ref := e.Value.(Ref); !named[ref] && !yield(ref) {
				return
			}
		}
	}
}
