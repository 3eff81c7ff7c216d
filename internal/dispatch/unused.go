package dispatch

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
)

// UnusedResult is a result of an earlier run that no job of this one has taken.
type UnusedResult struct {
	Record Record   // deletes it; its key is that of the result
	Job    string   // that it was made by
	PFNs   []string // of its outputs
}

// Unused returns the results that no job has taken, so far, those of the oldest
// incarnation first. The caller may remove them, with their files, when no job
// will come any more that could; a Core that is loaded afterwards no longer
// knows them.
func (c *Core) Unused() []UnusedResult {
	keys := c.journal.resultKeys()
	list := make([]UnusedResult, len(keys))
	for i, key := range keys {
		list[i].Record = Record{Table: TableResult, Key: key.hex()}
		list[i].Job = c.journal.results[key].job
		for _, o := range c.journal.results[key].outputs {
			if o.PFN != "" {
				list[i].PFNs = append(list[i].PFNs, o.PFN)
			}
		}
	}
	return list
}

// resultKeys are the keys of the results that no job has taken, oldest first.
func (jn *journal) resultKeys() []identity {
	return slices.SortedFunc(maps.Keys(jn.results), func(a, b identity) int {
		return cmp.Or(cmp.Compare(jn.results[a].made, jn.results[b].made), bytes.Compare(a[:], b[:]))
	})
}
