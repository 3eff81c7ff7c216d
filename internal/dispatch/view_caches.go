package dispatch

import (
	"iter"
	"maps"
	"slices"

	"fairway/internal/taskqueue"
)

// Nodes yields the nodes that have registered pilots, by the names that Node and NextReaders
// take, each with its host, in no order. Several may be of one host name. The Core must not
// be stepped meanwhile.
func (c *Core) Nodes() iter.Seq2[string, string] {
	return func(yield func(name, host string) bool) {
		for name, h := range c.fleet.hosts {
			if !yield(name, h.pilots[0].info.Host) {
				return
			}
		}
	}
}

// Node returns what the caches of a node hold; false if it has no pilot any more. The copies
// are in no order.
func (c *Core) Node(name string) (taskqueue.NodeView, bool) {
	h := c.fleet.hosts[name]
	if h == nil {
		return taskqueue.NodeView{}, false
	}
	view := taskqueue.NodeView{Host: h.pilots[0].info.Host, Pilots: len(h.pilots)}
	kinds := map[string]bool{}
	for _, p := range h.pilots {
		kinds[p.info.CacheKind()] = true
		view.Limit += p.info.CacheSize
	}
	view.Kinds = slices.Sorted(maps.Keys(kinds))
	for _, pilots := range h.caches() {
		view.Copies = append(view.Copies, c.copiesIn(pilots)...)
	}
	return view, true
}

// caches are the pilots of the host, those together that share their caches.
func (h *host) caches() (all [][]*pilot) {
	var sharing []*pilot
	for _, p := range h.pilots {
		if p.info.CacheDir == "" {
			all = append(all, []*pilot{p})
		} else {
			sharing = append(sharing, p)
		}
	}
	if sharing != nil {
		all = append(all, sharing)
	}
	return all
}

// copiesIn are the copies that pilots hold which share their caches, or one that does not.
func (c *Core) copiesIn(pilots []*pilot) (copies []taskqueue.CopyView) {
	pinned := firstReaders(pilots, func(a *attempt) bool { return a.started })
	at := make(map[taskqueue.FileRef]int, len(pilots[0].copies.versions))
	for _, p := range pilots {
		add := func(r taskqueue.FileRef, size int64, pinned, stale bool) {
			i, ok := at[r]
			if !ok {
				i = len(copies)
				at[r] = i
				copies = append(copies, taskqueue.CopyView{File: r, Size: size, Stale: stale, Pilot: p.id})
			}
			copies[i].Pinned = copies[i].Pinned || pinned
		}
		for _, v := range p.copies.versions {
			r := c.files.copyAt(p, v)
			add(r, v.size, pinned[v] != nil, false)
			if runs := &copies[at[r]].Runs; !slices.Contains(*runs, v.run) {
				*runs = append(*runs, v.run)
			}
		}
		for r, size := range p.copies.other.All() {
			add(r, size, false, c.fleet.attempts[taskqueue.AttemptID(r.Tag)] == nil)
		}
	}
	return copies
}

// firstReaders are the versions that some attempts of pilots read, each with the job of the
// first one.
func firstReaders(pilots []*pilot, some func(*attempt) bool) map[*version]*job {
	readers := map[*version]*job{}
	for _, p := range pilots {
		for _, a := range p.attempts {
			if !some(a) {
				continue
			}
			for v := range a.job.inputs {
				if readers[v] == nil {
					readers[v] = a.job
				}
			}
		}
	}
	return readers
}

// NextReaders returns for each of some copies in the caches of a node the job that is
// expected to read it next; the zero value where there is none that has not begun. Jobs that
// are queued where the copy is come before those that are queued nowhere.
func (c *Core) NextReaders(name string, copies []taskqueue.CopyView) []taskqueue.JobRef {
	next := make([]taskqueue.JobRef, len(copies))
	h := c.fleet.hosts[name]
	if h == nil {
		return next
	}
	queued := map[*pilot]map[*version]*job{}
	for _, pilots := range h.caches() {
		here := firstReaders(pilots, func(a *attempt) bool { return !a.started && !a.told.ended })
		for _, p := range pilots {
			queued[p] = here
		}
	}
	for i := range copies {
		p := c.fleet.pilots[copies[i].Pilot]
		if p == nil || copies[i].Stale {
			continue
		}
		v := c.files.copied(p, copies[i].File)
		if v == nil {
			continue
		}
		if j := queued[p][v]; j != nil {
			next[i] = j.ref()
		} else if row, read := c.placement.nextReader(v); read {
			next[i] = c.jobs.table.At(row).ref()
		}
	}
	return next
}
