package dispatch

import (
	"cmp"
	"slices"

	"fairway/internal/dispatch/rows"
	"fairway/internal/taskqueue"
)

// The ready jobs are indexed by group, that is user, requirement class and priority,
// and within a group by rank, by age, and by each file that they read. Entries
// are left behind when a job stops being ready, and dropped when met: an entry
// counts only while the job's bit in readyBit is set and its group is the
// entry's.

// group is the ready jobs of one user, one class and one priority.
type group struct {
	share     *share
	level     *level // where it stands while ready > 0
	class     *class
	priority  int32
	ready     int
	staging   int // of these, how many read files that are staged in
	slot      int // index in level.groups while ready > 0
	ranks     rows.Heap
	ages      rows.Queue[aged] // in the order in which they became ready
	armed     instant
	admission admission // for the pilot that is asking
	closed    uint64    // placement.pulls when it got none of these any more: they would delay a gang
}

type aged struct {
	id    uint32
	since instant
}

// level is the groups of one user and one priority that have ready jobs.
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
func (js *jobs) index(j *job) {
	g := groupOf(j.share(), j.class, j.effective)
	j.group = g
	if g.ready == 0 {
		s := g.share
		i, ok := g.findLevel()
		if !ok {
			s.Own.levels = slices.Insert(s.Own.levels, i, &level{priority: g.priority})
		}
		g.level, g.slot = s.Own.levels[i], len(s.Own.levels[i].groups)
		g.level.groups = append(g.level.groups, g)
	}
	g.ready++
	js.shares.GotReady(g.share, 1)
	js.ready++
	if g.class.gang() {
		js.gangs++
	}
	js.changed = true
	js.readyBit.Add(j.row)
	g.ranks.Push(j.row)
	g.ages.Push(aged{j.row, j.readySince})
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			js.addReader(v, g, j.row)
		}
	}
	if j.stages() {
		g.staging++
	}
	if !j.freshly {
		j.freshly = true
		js.work.fresh = append(js.work.fresh, j)
	}
	js.armSiteWait(g)
}

// stages reports whether the job reads files that are staged in.
func (j *job) stages() bool {
	for i := range j.requests {
		if j.requests[i].staged() {
			return true
		}
	}
	return false
}

func (js *jobs) addReader(v *version, g *group, row uint32) {
	if len(v.ready) == 0 && !v.announced {
		v.announced = true
		for _, p := range v.holders {
			p.heat(v)
		}
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

// unindex takes a job out of the indexes, and reports whether it was ready.
func (js *jobs) unindex(j *job) bool {
	g := j.group
	if g == nil {
		return false
	}
	j.group = nil
	js.readyBit.Remove(j.row)
	js.ready--
	if g.class.gang() {
		js.gangs--
	}
	g.ready--
	js.shares.GotReady(g.share, -1)
	if j.stages() {
		g.staging--
	}
	js.changed = true
	if g.ready == 0 { // with it go the entries left behind, which is all there is
		l := g.level
		last := len(l.groups) - 1
		l.groups[g.slot] = l.groups[last]
		l.groups[g.slot].slot = g.slot
		l.groups = l.groups[:last]
		if last == 0 {
			i, _ := g.findLevel()
			g.share.Own.levels = slices.Delete(g.share.Own.levels, i, i+1)
		}
		g.level = nil
		g.ranks = g.ranks[:0]
		g.ages.Clear()
	}
	return true
}

// groupOf returns the group of a class and priority that a user has, which is made if it is new.
func groupOf(s *share, cl *class, priority int32) *group {
	if g := cl.lately; g != nil && g.share == s && g.priority == priority {
		return g
	}
	k := groupKey{cl, priority}
	g := s.Own.groups[k]
	if g == nil {
		g = &group{share: s, class: cl, priority: priority}
		if s.Own.groups == nil {
			s.Own.groups = make(map[groupKey]*group)
		}
		s.Own.groups[k] = g
		cl.groups = append(cl.groups, g)
	}
	cl.lately = g
	return g
}

// findLevel finds the level of a group, or where it is to be inserted.
func (g *group) findLevel() (int, bool) {
	return slices.BinarySearchFunc(g.share.Own.levels, g.priority,
		func(l *level, p int32) int { return cmp.Compare(p, l.priority) })
}

// levels yields what is ready: the levels of all users, by turn.
func (js *jobs) levels(yield func(*level) bool) {
	for s := range js.shares.InOrder {
		for _, l := range s.Own.levels {
			if !yield(l) {
				return
			}
		}
	}
}

// isReady reports whether an entry of the group counts: others were left behind.
func (js *jobs) isReady(id uint32, g *group) bool {
	return js.readyBit.Has(id) && js.table.At(id).group == g
}

// first returns the ready job of the group that has the lowest rank.
func (js *jobs) first(g *group) *job {
	if id, ok := js.top(&g.ranks, g); ok {
		return js.table.At(id)
	}
	return nil
}

func (js *jobs) top(h *rows.Heap, g *group) (uint32, bool) {
	for len(*h) > 0 {
		if id := (*h)[0]; js.isReady(id, g) {
			return id, true
		}
		h.Pop()
	}
	return 0, false
}

func (js *jobs) topOf(r *readyReader) (uint32, bool) { return js.top(&r.jobs, r.group) }

// oldest returns the job of the group that has been ready for longest.
func (js *jobs) oldest(g *group) *job {
	for g.ages.Len() > 0 {
		a := g.ages.Front()
		if js.isReady(a.id, g) && js.table.At(a.id).readySince == a.since {
			return js.table.At(a.id)
		}
		g.ages.Pop()
	}
	return nil
}

// armSiteWait has the group looked at when its jobs may go to other sites.
func (js *jobs) armSiteWait(g *group) {
	if g.class.key.site == "" || g.class.key.wait <= 0 {
		return
	}
	j := js.oldest(g)
	if at := j.readySince.After(g.class.key.wait); g.armed == 0 || at < g.armed {
		g.armed = at
		js.timers.add(timer{at: at, kind: groupTimer, group: g})
	}
}

// beginWaits is for the first transition of a Core that was loaded: jobs became ready when no time was known. They
// wait from now on, or all would count as passed over for too long, whatever their priority.
func (js *jobs) beginWaits() {
	for s := range js.shares.InOrder {
		for _, l := range s.Own.levels {
			for _, g := range l.groups {
				g.ages.Clear()
			}
		}
	}
	for j := range js.all {
		if j.state != taskqueue.Ready {
			continue
		}
		j.readySince = js.now
		if g := j.group; g != nil {
			g.ages.Push(aged{j.row, js.now})
			g.armed = 0
		}
	}
	for s := range js.shares.InOrder {
		for _, l := range s.Own.levels {
			for _, g := range l.groups {
				js.armSiteWait(g)
			}
		}
	}
}

// pastSiteWait returns the job of the group that has waited for its own site
// for longest, if that was long enough.
func (js *jobs) pastSiteWait(g *group) *job {
	if j := js.oldest(g); j != nil && j.readySince.After(g.class.key.wait) <= js.now {
		return j
	}
	return nil
}

// inheritPriority raises what a newly submitted job waits for to its own
// priority, and returns the ready jobs that moved. It costs nothing while all
// priorities are equal.
func (js *jobs) inheritPriority(j *job) (moved []*job) {
	if !js.unequal {
		if js.totals.Jobs == 1 {
			js.common = j.effective
		}
		js.unequal = js.common != j.effective
		if !js.unequal {
			return nil
		}
	}
	return js.raiseAhead(&raising{todo: []*job{j}})
}

// inheritFromReaders is for a job that becomes live again: those who wait for
// its versions are not behind it in a FIFO. It returns the ready jobs that moved.
func (js *jobs) inheritFromReaders(j *job) (moved []*job) {
	if !js.unequal {
		return nil
	}
	highest := j.effective
	for _, v := range js.files.writtenBy(j) {
		for _, w := range js.files.waiters[v] {
			highest = max(highest, w.effective)
		}
	}
	if highest > j.effective {
		j.effective = highest
		moved = js.raiseAhead(&raising{todo: []*job{j}})
	}
	return moved
}

// raiseAhead raises all jobs that those of a walk wait for, and returns the ready jobs that moved.
func (js *jobs) raiseAhead(w *raising) (moved []*job) {
	js.walkAhead(w)
	for _, j := range w.raised {
		if js.regroup(j) {
			moved = append(moved, j)
		}
	}
	return moved
}

// regroup has a job stand among the ready of its priority, and reports whether it stood elsewhere.
func (js *jobs) regroup(j *job) bool {
	if j.group == nil || j.group.priority == j.effective {
		return false
	}
	js.unindex(j)
	js.index(j)
	return true
}

// walkAhead raises all jobs that those of a walk wait for, directly or through others.
func (js *jobs) walkAhead(w *raising) {
	for len(w.todo) > 0 {
		j := pop(&w.todo)
		for i := range j.requests {
			r := &j.requests[i]
			if v := r.read; v != nil && v.state != present && v.writer != nil && v.writer.live() {
				js.raise(v.writer, j.effective, w)
			}
			if r.Queued() && !r.Granted() {
				js.raiseBefore(r, j.effective, w)
			}
		}
	}
}

// raising is a walk over the jobs that one waits for.
type raising struct {
	todo   []*job // what they wait for was not raised yet
	raised []*job // may be ready, and stand in the group of their old priority
}

// maxUnraised is how many requests are walked over again before a lower
// priority takes the place of a higher one in files.raisedTo.
const maxUnraised = 64

// raised says of a file up to which request all that are queued have at least
// a priority.
type raised struct {
	request  *request
	priority int32
}

// raiseBefore raises the jobs whose requests stand before r. Up to where that
// was done is kept in mind for each file, so that a long queue is not walked for
// each job that joins it.
func (js *jobs) raiseBefore(r *request, priority int32, w *raising) {
	f := r.file()
	mark, ok := js.files.raisedTo[f]
	walked := 0
	for b := r.Prev(); b != nil; b = b.Prev() {
		if ok && b.Owner == mark.request && priority <= mark.priority {
			break
		}
		js.raise(b.Owner.job, priority, w)
		walked++
	}
	if prev := r.Prev(); walked > 0 && (!ok || priority >= mark.priority || walked > maxUnraised) {
		js.files.raisedTo[f] = raised{prev.Owner, priority}
	}
}

func (js *jobs) raise(j *job, priority int32, w *raising) {
	if j.effective >= priority {
		return
	}
	j.effective = priority
	w.raised, w.todo = append(w.raised, j), append(w.todo, j)
}
