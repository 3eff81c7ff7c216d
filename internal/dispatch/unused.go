package dispatch

import "encoding/hex"

// UnusedResult is a result of an earlier run that no job of this one has taken.
type UnusedResult struct {
	Record Record   // deletes it
	PFNs   []string // of its outputs
}

// Unused returns the results that no job has taken, so far. The caller may
// remove them, with their files, when no job will come any more that could; a
// Core that is loaded afterwards no longer knows them.
func (c *Core) Unused() []UnusedResult {
	list := make([]UnusedResult, 0, len(c.results))
	for key, result := range c.results {
		unused := UnusedResult{Record: Record{Table: TableResult, Key: hex.EncodeToString(key[:])}}
		for _, o := range result.outputs {
			if o.PFN != "" {
				unused.PFNs = append(unused.PFNs, o.PFN)
			}
		}
		list = append(list, unused)
	}
	return list
}
