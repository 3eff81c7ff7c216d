package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/fifo"
)

// maxExplained bounds what one explanation names of a kind.
const maxExplained = 20

// Explain says as facts what a job waits for; package explain has the words.
func (c *Core) Explain(id taskqueue.JobID) (taskqueue.Explanation, bool) {
	j := c.jobs.find(id)
	if j == nil {
		return taskqueue.Explanation{}, false
	}
	e := taskqueue.Explanation{JobView: c.view(j), Taken: c.journal.originOf(j)}
	switch j.state {
	case taskqueue.Waiting:
		c.explainWaiting(j, &e)
	case taskqueue.Ready:
		e.Ready = c.explainReady(j)
		if s := e.Ready.Survey; s != nil && len(s.Sites) == 0 && (e.Ready.Gang != nil || s.Free+s.Busy+s.Drained.Len() == 0) {
			e.Missing = s.Short.Names()
		}
	case taskqueue.Blocked: // its reason tells it
	case taskqueue.Assigned, taskqueue.Running:
		c.explainAttempts(j, &e)
	default:
		for _, v := range c.files.lostOutputs(j) {
			e.Lost = append(e.Lost, v.file.lfn)
		}
		for _, v := range c.files.writtenBy(j) {
			if o := j.outputFor(v.file.lfn); o != nil && o.Temporary && v.committed() && v.tag != lostTag {
				e.Temporary.Add(taskqueue.TemporaryOutput{LFN: v.file.lfn, Removed: v.pfn == "",
					Unread: !v.hasReader && v.readersKnown(), Readers: int(v.pins)}, maxExplained)
			}
		}
	}
	return e, true
}

func (c *Core) explainWaiting(j *job, e *taskqueue.Explanation) {
	var missing []*version
	reads := 0
	for v := range j.inputs {
		reads++
		if v.state != present && v.writer != nil {
			missing = append(missing, v)
		}
	}
	many := len(missing) > fewMissing
	for i := range j.requests {
		j.requests[i].explain(e, !many)
	}
	if many {
		e.Inputs = explainMissing(missing, reads, e)
	}
	if w := c.jobs.twins.executed(j); w != nil && c.jobs.twins.follows(j) {
		e.Twin = &taskqueue.Twin{Origin: w.origin(), State: w.state}
	}
	if j.fate != nil && j.fate.backingOff {
		e.Again = &taskqueue.Again{In: c.left(j.fate.NotBefore), Reason: j.fate.Reason}
	}
}

// explain names the jobs that stand before the request, but for those with which it shares the
// file, and, if writers are to be told of, the writer of a version that is not there.
func (r *request) explain(e *taskqueue.Explanation, writers bool) {
	conflicts := r.Mode() == fifo.Write
	for b := r.Prev(); b != nil && !r.Granted(); b = b.Prev() {
		conflicts = conflicts || b.Mode() == fifo.Write
		if conflicts && (writers || r.read == nil || b.Owner.job != r.read.writer) {
			e.WaitsFor.Add(waitsFor(b.Owner.about(), b.Owner.job, r.Mode().String()), maxExplained)
		}
	}
	if v := r.read; writers && v != nil && (!r.Queued() || r.Granted()) && v.state != present && v.writer != nil {
		e.WaitsFor.Add(waitsFor(v.ref(), v.writer, ""), maxExplained)
	}
}

func waitsFor(file taskqueue.FileRef, j *job, behind string) taskqueue.WaitsFor {
	return taskqueue.WaitsFor{File: file, Job: j.id, Name: j.name, State: j.state, Behind: behind}
}

// about is the version that a request is about.
func (r *request) about() taskqueue.FileRef {
	if r.write != nil {
		return r.write.ref()
	}
	return r.read.ref()
}

// fewMissing is how many missing inputs are told of one by one.
const fewMissing = 3

// explainMissing tells of many inputs how many are missing, and how the jobs stand that make them.
func explainMissing(missing []*version, reads int, e *taskqueue.Explanation) *taskqueue.MissingInputs {
	byState := map[taskqueue.State]taskqueue.Makers{}
	for _, v := range missing {
		w := v.writer
		if len(e.WaitsFor.First) < maxExplained {
			e.WaitsFor.First = append(e.WaitsFor.First, waitsFor(v.ref(), w, ""))
		}
		m := byState[w.state]
		byState[w.state] = taskqueue.Makers{State: w.state, Jobs: m.Jobs + 1, First: cmp.Or(m.First, w.name)}
	}
	m := &taskqueue.MissingInputs{Missing: len(missing), Of: reads}
	for _, state := range slices.Sorted(maps.Keys(byState)) {
		m.Makers = append(m.Makers, byState[state])
	}
	return m
}

// explainAttempts says where the attempts of a job are. Those of a gang come by task.
func (c *Core) explainAttempts(j *job, e *taskqueue.Explanation) {
	var all []*attempt
	for a := j.attempt; a != nil; a = a.next {
		all = append(all, a)
	}
	g := c.fleet.gangs[j]
	if g == nil {
		for _, a := range all {
			e.Places.Add(c.standing(a), len(all))
		}
		return
	}
	slices.SortFunc(all, func(a, b *attempt) int { return cmp.Compare(a.id, b.id) })
	for _, a := range all {
		e.Places.Add(c.standing(a), maxExplained)
	}
	for task, done := range g.done {
		switch {
		case done && e.Places.Len()+len(e.TasksDone) < maxExplained:
			e.TasksDone = append(e.TasksDone, task)
		case done:
			e.Places.More++
		}
	}
}

// standing says where an attempt is, and why it has not started there.
func (c *Core) standing(a *attempt) taskqueue.AttemptStanding {
	p := a.pilot
	s := taskqueue.AttemptStanding{
		Try: a.try, InGang: a.gang != nil, Task: a.task, Pilot: p.id, Host: p.info.Host, Phase: a.phase(),
		IsEnding: a.told.ended, AwaitsTurn: a.waitsItsTurn(), Away: p.away,
	}
	if p.lease.silent != 0 {
		s.Silent = &taskqueue.Silence{For: time.Duration(c.now - p.lease.silent), Until: c.until(p.lease.silentAfter)}
	}
	if s.AwaitsTurn {
		s.Ahead = a.behind()
	}
	for _, w := range p.waiting {
		if v := a.job.readVersion(w.LFN); w.Attempt == a.id && v != nil {
			s.Inputs = append(s.Inputs, taskqueue.AwaitedInput{WaitingInput: w, Size: v.size})
		}
	}
	return s
}

// behind names the first job that the pilot was given before this one, and counts the others; nil if
// there are only such as are being ended.
func (a *attempt) behind() (first *taskqueue.JobAhead) {
	for _, b := range a.pilot.attempts {
		switch j := b.job; {
		case b.told.ended || !b.precedes(a):
		case first != nil:
			first.More++
		case j.id.Run() != a.job.id.Run(): // which may be another user's
			first = &taskqueue.JobAhead{State: j.state}
		default:
			first = &taskqueue.JobAhead{Name: j.name, State: j.state}
		}
	}
	return first
}

// explainReady says why no pilot has a job that could run.
func (c *Core) explainReady(j *job) *taskqueue.Readiness {
	r := &taskqueue.Readiness{}
	k, ok := c.placement.delayed.jobs[j.row]
	switch {
	case j.step.run.halted():
		r.Hold, r.Run, r.Reason = taskqueue.RunHalted, j.step.run.state, j.step.run.reason
	case c.fleet.stop != running:
		r.Hold = taskqueue.AllEnds
	case !c.fleet.grace.over:
		r.Hold, r.For = taskqueue.PilotsReturn, c.config.ReconnectGrace
	case ok && k.holder == nil:
		r.Hold, r.Site, r.For = taskqueue.KeptForSite, k.site.Name, c.until(k.until)
	case ok:
		r.Hold, r.Pilot, r.For = taskqueue.KeptForPilot, k.holder.id, c.until(k.until)
	}
	if r.Hold != taskqueue.NotHeld {
		return r
	}
	if j.class.gang() {
		r.Gang = c.placement.gangRoom(j)
	}
	if r.Gang == nil || r.Gang.Whole < r.Gang.Tasks {
		r.Survey = c.survey(j)
	}
	key := &j.class.key
	if until := j.readySince.After(key.wait); key.site != "" && until > c.now {
		r.Prefers = &taskqueue.Preference{Site: key.site, Known: c.fleet.monitor.site(key.site) != nil, For: c.until(until)}
	}
	r.Turn = c.turn(j)
	return r
}

// survey is what the registered pilots, and those that sites could start, are to a ready job.
func (c *Core) survey(j *job) *taskqueue.Survey {
	k := &j.class.key
	s := &taskqueue.Survey{Failing: make(map[string]int), Avoid: hostOf(k.avoid)}
	if k.bound() {
		s.Bound = k.host + string(k.pilot)
	}
	for _, p := range c.fleet.inOrder() {
		c.count(s, p, j)
	}
	for _, at := range c.fleet.monitor.sites {
		if l := at.lacks(j.class); len(l) > 0 {
			s.Short.Add(l)
			continue
		}
		s.Sites = append(s.Sites, taskqueue.SiteStanding{
			Name: at.Name, Starting: at.inactive(), IsFull: at.submitted() >= at.MaxPilots, Most: at.MaxPilots,
			IsPaused: at.notBefore > c.now, Pause: c.until(at.notBefore), Failures: at.failures,
		})
	}
	return s
}

func (c *Core) count(s *taskqueue.Survey, p *pilot, j *job) {
	l := lacks(j.class, p.hasNow(c.now), p.shape.tools)
	k := &j.class.key
	if s.Pilots++; p.info.Error == "" {
		for _, n := range l {
			s.Failing[n.Name]++
		}
	}
	switch {
	case p.info.Error != "":
		s.Broken.Add(p.info.Error, maxExplained)
	case p.lease.silent != 0:
		s.Silent.Add(p.id, maxExplained)
	case !p.willing() || p.expires != 0 && p.expires <= c.now:
		s.Ending++
	case len(l) > 0:
		s.Short.Add(l)
	case k.bound() && p.cache() != cacheID{k.host, k.pilot}:
	case !c.fleet.outlives(p, j.class):
		s.Short.Add([]taskqueue.Unmet{{Name: "time with staging", Unit: taskqueue.InTime,
			Needs: int64(j.class.inAll()), Has: int64(p.hasNow(c.now).Time)}})
	case !c.fleet.fitsWhole(p, j.class) && k.avoid == p.host.name:
		s.Avoided++
	case !c.fleet.fitsWhole(p, j.class):
		if h := p.host.health; h != nil { // its node is told of once
			why := fmt.Sprintf("node %s: %s", p.info.Host, c.whyDoubted(h))
			if !slices.Contains(s.Doubted.First, why) {
				s.Doubted.Add(why, maxExplained)
			}
		}
	case p.seat.reserved != nil && p.seat.reserved != j:
		s.Drained.Add(p.seat.reserved.name, maxExplained)
	case !p.room.Fits(&j.class.takes, 1):
		s.Busy++
		s.Occupied.Add(p.room.Lacks(&j.class.takes))
	default:
		s.Free++
	}
}

// maxBefore bounds the users before one who are named.
const maxBefore = 3

// turn says where the user of a ready job stands in line, and what limits keep the job.
func (c *Core) turn(j *job) (t taskqueue.Turn) {
	t.Pools = j.class.pools.Standing(c.now, j, j.class.tasks(), func(o *job) string { return o.name })
	if c.shares.Alone() {
		return t
	}
	s := j.share()
	for x := range s.Up {
		t.Shares = append(t.Shares, c.shares.Standing(c.now, x))
	}
	for x := range c.shares.InOrder {
		t.Users++
		if x == s {
			t.Place = t.Users
		} else if t.Place == 0 {
			t.Before.Add(x.Title(), maxBefore)
		}
	}
	t.Ahead = c.before(j)
	return t
}

// before is how many ready jobs of the user are of a higher priority, or of the same and a lower rank.
func (c *Core) before(j *job) (n int) {
	for _, l := range j.share().Own.levels {
		for _, g := range l.groups {
			switch {
			case l.priority > j.effective:
				n += g.ready
			case l.priority == j.effective:
				for _, row := range g.ranks {
					if row < j.row && c.jobs.isReady(row, g) {
						n++
					}
				}
			}
		}
	}
	return n
}
