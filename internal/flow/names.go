package flow

import (
	"slices"
	"strings"

	"fairway/internal/dispatch/rows"
)

// names are all names of a run, by LFN. There may be millions of them, so they stand in
// rows, and the index has no pointers for the garbage collector to follow.
type names struct{ rows.Named[name] }

// isMade reports whether the maker of a name is known.
func (ns *names) isMade(lfn string) bool {
	n := ns.Find(lfn)
	return n != nil && n.file != nil
}

func (ns *names) sorted() []*name {
	all := make([]*name, 0, ns.Len())
	for n := range ns.All {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *name) int { return strings.Compare(a.lfn, b.lfn) })
	return all
}
