package dispatch

import (
	"slices"

	"fairway/internal/dispatch/rows"
)

// The ready jobs are indexed by group, that is requirement class and priority,
// and within a group by rank, by age, and by each file that they read. Entries
// are left behind when a job stops being ready, and dropped when met: an entry
// counts only while the job's bit in readyBit is set and its group is the
// entry's.

// group is the ready jobs of one class and one priority.
type group struct {
	class    *class
	priority int32
	ready    int
	slot     int // index in level.groups while ready > 0
	ranks    rows.Heap
	ages     rows.Queue[aged] // in the order in which they became ready
	armed    instant
	open     admission // for the pilot that is asking
}

type aged struct {
	id    uint32
	since instant
}

// level is the groups of one priority that have ready jobs.
type level struct {
	priority int32
	groups   []*group
}

// readyReader is the ready readers of one version that are of one group.
type readyReader struct {
	group *group
	jobs  rows.Heap
}

func (c *Core) makeReady(j *job) {
	c.setState(j, Ready)
	j.readySince = c.now
	c.setClass(j)
	c.index(j)
	c.jobEvent(JobReady, j, "")
}

// index enters a ready job.
func (c *Core) index(j *job) {
	g := c.groupOf(j.class, j.effective)
	j.group = g
	if g.ready == 0 {
		c.activate(g)
	}
	g.ready++
	c.ready++
	c.readyChanged = true
	c.readyBit.Add(uint32(j.id))
	g.ranks.Push(uint32(j.id))
	g.ages.Push(aged{uint32(j.id), j.readySince})
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			c.addReader(v, g, j.id)
		}
	}
	if !j.freshly {
		j.freshly = true
		c.work.fresh = append(c.work.fresh, j)
	}
	c.armSiteWait(g)
}

// unready takes a job out of the indexes if it is ready.
func (c *Core) unready(j *job) {
	g := j.group
	if g == nil {
		return
	}
	j.group = nil
	c.unkeep(j)
	c.readyBit.Remove(uint32(j.id))
	c.ready--
	g.ready--
	c.readyChanged = true
	if g.ready == 0 {
		c.deactivate(g)
	}
	if p := c.reserved[j]; p != nil {
		c.release(p)
	}
}

// isReady tells live entries from those left behind.
func (c *Core) isReady(id uint32, g *group) bool {
	return c.readyBit.Has(id) && c.jobs.At(id).group == g
}

func (c *Core) groupOf(cl *class, priority int32) *group {
	for _, g := range cl.groups {
		if g.priority == priority {
			return g
		}
	}
	g := &group{class: cl, priority: priority}
	cl.groups = append(cl.groups, g)
	return g
}

func (c *Core) activate(g *group) {
	i, found := slices.BinarySearchFunc(c.levels, g.priority, func(l *level, p int32) int {
		return int(int64(p) - int64(l.priority))
	})
	if !found {
		c.levels = slices.Insert(c.levels, i, &level{priority: g.priority})
	}
	l := c.levels[i]
	g.slot = len(l.groups)
	l.groups = append(l.groups, g)
}

// deactivate also drops the entries left behind, which is all there is.
func (c *Core) deactivate(g *group) {
	i, _ := slices.BinarySearchFunc(c.levels, g.priority, func(l *level, p int32) int {
		return int(int64(p) - int64(l.priority))
	})
	l := c.levels[i]
	last := len(l.groups) - 1
	l.groups[g.slot] = l.groups[last]
	l.groups[g.slot].slot = g.slot
	l.groups = l.groups[:last]
	if last == 0 {
		c.levels = slices.Delete(c.levels, i, i+1)
	}
	g.ranks = g.ranks[:0]
	g.ages.Clear()
}

// first returns the ready job of the group that has the lowest rank.
func (c *Core) first(g *group) *job {
	if id, ok := c.top(&g.ranks, g); ok {
		return c.jobs.At(id)
	}
	return nil
}

func (c *Core) top(h *rows.Heap, g *group) (uint32, bool) {
	for len(*h) > 0 {
		if id := (*h)[0]; c.isReady(id, g) {
			return id, true
		}
		h.Pop()
	}
	return 0, false
}

// oldest returns the job of the group that has been ready for longest.
func (c *Core) oldest(g *group) *job {
	for g.ages.Len() > 0 {
		a := g.ages.Front()
		if c.isReady(a.id, g) && c.jobs.At(a.id).readySince == a.since {
			return c.jobs.At(a.id)
		}
		g.ages.Pop()
	}
	return nil
}

func (c *Core) addReader(v *version, g *group, id JobID) {
	if len(v.ready) == 0 && !v.announced {
		v.announce()
	}
	for i := range v.ready {
		if v.ready[i].group == g {
			v.ready[i].jobs.Push(uint32(id))
			return
		}
	}
	if len(v.ready) == 0 {
		v.ready = v.mostly[:0]
	}
	v.ready = append(v.ready, readyReader{group: g})
	v.ready[len(v.ready)-1].jobs.Push(uint32(id))
}

// announce tells the holders of a version that it has ready readers.
func (v *version) announce() {
	v.announced = true
	for _, p := range v.holders {
		p.heat(v)
	}
}
