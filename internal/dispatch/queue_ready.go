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

// index enters a ready job.
func (q *queue) index(j *job) {
	g := q.groupOf(j.class, j.effective)
	j.group = g
	if g.ready == 0 {
		q.activate(g)
	}
	g.ready++
	q.ready++
	q.changed = true
	q.readyBit.Add(j.row)
	g.ranks.Push(j.row)
	g.ages.Push(aged{j.row, j.readySince})
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			q.addReader(v, g, j.row)
		}
	}
	if !j.freshly {
		j.freshly = true
		q.work.fresh = append(q.work.fresh, j)
	}
	q.armSiteWait(g)
}

func (q *queue) addReader(v *version, g *group, row uint32) {
	if len(v.ready) == 0 && !v.announced {
		v.announce()
	}
	for i := range v.ready {
		if v.ready[i].group == g {
			v.ready[i].jobs.Push(row)
			return
		}
	}
	if len(v.ready) == 0 {
		v.ready = v.mostly[:0]
	}
	v.ready = append(v.ready, readyReader{group: g})
	v.ready[len(v.ready)-1].jobs.Push(row)
}

// announce tells the holders of a version that it has ready readers.
func (v *version) announce() {
	v.announced = true
	for _, p := range v.holders {
		p.heat(v)
	}
}

// unindex takes a job out of the indexes, and reports whether it was ready.
func (q *queue) unindex(j *job) bool {
	g := j.group
	if g == nil {
		return false
	}
	j.group = nil
	q.readyBit.Remove(j.row)
	q.ready--
	g.ready--
	q.changed = true
	if g.ready == 0 {
		q.deactivate(g)
	}
	return true
}

func (q *queue) groupOf(cl *class, priority int32) *group {
	for _, g := range cl.groups {
		if g.priority == priority {
			return g
		}
	}
	g := &group{class: cl, priority: priority}
	cl.groups = append(cl.groups, g)
	return g
}

func (q *queue) activate(g *group) {
	i, ok := slices.BinarySearchFunc(q.levels, g.priority, func(l *level, p int32) int {
		return int(int64(p) - int64(l.priority))
	})
	if !ok {
		q.levels = slices.Insert(q.levels, i, &level{priority: g.priority})
	}
	l := q.levels[i]
	g.slot = len(l.groups)
	l.groups = append(l.groups, g)
}

// deactivate also drops the entries left behind, which is all there is.
func (q *queue) deactivate(g *group) {
	i, _ := slices.BinarySearchFunc(q.levels, g.priority, func(l *level, p int32) int {
		return int(int64(p) - int64(l.priority))
	})
	l := q.levels[i]
	last := len(l.groups) - 1
	l.groups[g.slot] = l.groups[last]
	l.groups[g.slot].slot = g.slot
	l.groups = l.groups[:last]
	if last == 0 {
		q.levels = slices.Delete(q.levels, i, i+1)
	}
	g.ranks = g.ranks[:0]
	g.ages.Clear()
}

// isReady tells live entries from those left behind.
func (q *queue) isReady(id uint32, g *group) bool {
	return q.readyBit.Has(id) && q.jobs.At(id).group == g
}

// first returns the ready job of the group that has the lowest rank.
func (q *queue) first(g *group) *job {
	if id, ok := q.top(&g.ranks, g); ok {
		return q.jobs.At(id)
	}
	return nil
}

func (q *queue) top(h *rows.Heap, g *group) (uint32, bool) {
	for len(*h) > 0 {
		if id := (*h)[0]; q.isReady(id, g) {
			return id, true
		}
		h.Pop()
	}
	return 0, false
}

// oldest returns the job of the group that has been ready for longest.
func (q *queue) oldest(g *group) *job {
	for g.ages.Len() > 0 {
		a := g.ages.Front()
		if q.isReady(a.id, g) && q.jobs.At(a.id).readySince == a.since {
			return q.jobs.At(a.id)
		}
		g.ages.Pop()
	}
	return nil
}

// armSiteWait has the group looked at when its jobs may go to other sites.
func (q *queue) armSiteWait(g *group) {
	if g.class.key.site == "" || g.class.key.wait <= 0 {
		return
	}
	j := q.oldest(g)
	if at := j.readySince.after(g.class.key.wait); g.armed == 0 || at < g.armed {
		g.armed = at
		q.timers.add(timer{at: at, kind: groupTimer, group: g})
	}
}

// pastSiteWait returns the job of the group that has waited for its own site
// for longest, if that was long enough.
func (q *queue) pastSiteWait(g *group) *job {
	if j := q.oldest(g); j != nil && j.readySince.after(g.class.key.wait) <= q.now {
		return j
	}
	return nil
}
