package dispatch

import (
	"slices"

	"fairway/internal/taskqueue"
)

// setClass finds what the job needs now, after what happened to it.
func (pl *placement) setClass(j *job) {
	cl := j.original
	at := pl.boundTo(j)
	if j.original.gang() {
		at = cacheID{} // its members may be anywhere, and makeReachable has brought its inputs to storage
	}
	if f := j.fate; f != nil || at != (cacheID{}) {
		cl = pl.jobs.variant(j.original, func(k *classKey) {
			if f != nil {
				k.memory = max(k.memory, f.Memory)
				if at == (cacheID{}) {
					k.avoid = f.Avoid
				}
			}
			k.host, k.pilot = at.host, at.pilot
		})
	}
	j.needsNow(cl)
}

// avoidanceOver has a job that is ready still go to the node where it failed, too.
func (c *Core) avoidanceOver(j *job) {
	f := j.fate
	if f == nil || f.Avoid == "" || j.state != taskqueue.Ready || f.avoidUntil > c.now {
		return
	}
	f.Avoid = ""
	c.journal.persistFate(j)
	c.placement.unready(j)
	c.placement.setClass(j)
	if !j.step.run.halted() {
		c.jobs.index(j)
	}
}

// boundTo says where a job must run because inputs of it are in caches only:
// at the cache that has most of these.
func (pl *placement) boundTo(j *job) cacheID {
	best := pl.fleet.itsCache(j)
	if best != (cacheID{}) {
		return best
	}
	var most int64
	var seen []cacheID
	for v := range j.inputs {
		if v.pfn != "" {
			continue
		}
		for _, p := range v.holders[:min(len(v.holders), maxPlaces)] {
			at := p.cache()
			if len(seen) == maxPlaces || slices.Contains(seen, at) {
				continue
			}
			seen = append(seen, at)
			if w := pl.weightAt(j, at); w > most || w == most && at.less(best) {
				best, most = at, w
			}
		}
	}
	return best
}

// weightAt is how much of the inputs that are in caches only is in this one.
func (pl *placement) weightAt(j *job, at cacheID) int64 {
	var sum int64
	for v := range j.inputs {
		if v.pfn == "" && v.cachedAt(at) {
			sum += max(v.size, 1)
		}
	}
	return sum
}

// makeReachable has inputs made again that are in caches only, but not in those where
// the job must run for the sake of others; of a gang, all that are in caches only. It reports
// whether there are any.
func (pl *placement) makeReachable(j *job) bool {
	at := pl.boundTo(j)
	if at == (cacheID{}) {
		return false
	}
	if j.original.gang() {
		at = cacheID{} // a copy in storage: no cache is that of all its members
	}
	elsewhere := func(v *version) bool { return v.pfn == "" && !v.cachedAt(at) }
	if !pl.files.await(j, elsewhere) {
		return false
	}
	for v := range j.inputs {
		if elsewhere(v) {
			pl.files.wantVersion(v, at)
		}
	}
	return true
}

// unbind looks again at jobs that were to run at a cache that is no more.
func (pl *placement) unbind(at cacheID) {
	for _, cl := range pl.jobs.bound[at] {
		for _, g := range cl.groups {
			for j := pl.jobs.first(g); j != nil; j = pl.jobs.first(g) {
				pl.unready(j)
				if j.fate != nil {
					j.fate.cache = cacheID{}
				}
				pl.jobs.setState(j, taskqueue.Waiting)
				pl.work.examine = append(pl.work.examine, j)
			}
		}
	}
}
