package flow

import (
	"slices"
	"strings"

	"fairway/internal/dispatch/rows"
)

// names are all names of a run, by LFN. There may be millions of them, so they stand in
// rows, and the index has no pointers for the garbage collector to follow.
type names struct {
	index rows.Names
	table rows.Table[name]
}

// find returns what is known of a name, or nil.
func (ns *names) find(lfn string) *name { return ns.lookup(ns.index.Hash(lfn), lfn) }

// isMade reports whether the maker of a name is known.
func (ns *names) isMade(lfn string) bool {
	n := ns.find(lfn)
	return n != nil && n.file != nil
}

func (ns *names) lookup(hash uint64, lfn string) *name {
	if row, known := ns.index.Find(hash, func(row uint32) bool { return ns.table.At(row).lfn == lfn }); known {
		return ns.table.At(row)
	}
	return nil
}

// get returns what is known of a name, nothing yet if nobody has asked before.
func (ns *names) get(lfn string) *name {
	hash := ns.index.Hash(lfn)
	n := ns.lookup(hash, lfn)
	if n == nil {
		ns.index.Add(hash, ns.table.Len())
		n = ns.table.Add()
		n.lfn = lfn
	}
	return n
}

// sorted returns all of them in the order of their names.
func (ns *names) sorted() []*name {
	all := make([]*name, 0, ns.table.Len())
	for n := range ns.table.All {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *name) int { return strings.Compare(a.lfn, b.lfn) })
	return all
}
