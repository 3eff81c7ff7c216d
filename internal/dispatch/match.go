package dispatch

import (
	"slices"
	"time"
)

// admission is whether a pilot may be given jobs of a class.
type admission uint8

const (
	never  admission = iota
	onTime           // only jobs that have waited long enough for their own site
	always
)

// admits looks at what the pilot has left; ahead allows Config.Ahead times
// more than it has.
func (c *Core) admits(p *pilot, cl *class, ahead bool) admission {
	if !c.fleet.fitsWhole(p, cl) {
		return never
	}
	if !p.room(cl, 1) && (!ahead || !c.mayRunAhead(p, cl)) {
		return never
	}
	if k := &cl.key; k.site != "" && k.site != p.info.Site && k.wait > 0 {
		return onTime
	}
	return always
}

// fitsWhole reports whether the pilot could run the class if it ran nothing
// else.
func (fl *fleet) fitsWhole(p *pilot, cl *class) bool {
	k := &cl.key
	switch {
	case !p.shape.suits(cl):
		return false
	case k.bound() && p.place() != place{k.host, k.pilot}:
		return false
	case k.avoid != "" && k.avoid == p.info.Host && fl.elsewhere(cl, k.avoid):
		return false
	case !p.info.Expires.IsZero() && fl.now.after(k.time) > toInstant(p.info.Expires):
		return false
	}
	return true
}

// elsewhere reports whether a pilot on another host could run the class.
func (fl *fleet) elsewhere(cl *class, name string) bool {
	for _, s := range fl.shapes {
		if others := len(s.hosts); s.hosts[name] > 0 && others > 1 || s.hosts[name] == 0 && others > 0 {
			if s.suits(cl) {
				return true
			}
		}
	}
	return false
}

// mayRunAhead: jobs are queued at a pilot only while there are more of them
// than all pilots have slots, so that none runs dry meanwhile.
func (c *Core) mayRunAhead(p *pilot, cl *class) bool {
	return c.queue.ready > c.fleet.slots && p.room(cl, int64(1+c.config.Ahead))
}

// pull gives the pilot that asks the jobs that suit it best, until it is full
// or nothing fits.
func (c *Core) pull(p *pilot) {
	if p.reserved != nil && !c.fleet.takes(p) {
		c.release(p)
	}
	if !c.fleet.takes(p) || c.queue.ready == 0 || p.asked == c.offers+1 {
		return
	}
	c.pullOverdue(p)
	if p.reserved != nil {
		return
	}
	c.tally.level = nil
	c.kept.some = false
	for {
		j := c.choose(p)
		if j == nil {
			break
		}
		c.assign(j, p)
	}
	if !c.kept.some {
		p.asked = c.offers + 1
	}
}

// choose returns the ready job that the pilot should run next, of those that
// are not kept for another: of the highest priority; of these the one with most
// input in its cache; of these the one that was submitted first.
func (c *Core) choose(p *pilot) *job {
	for _, l := range c.queue.levels {
		if !c.open(p, l) {
			continue
		}
		if c.tally.level != l {
			c.tallyLevel(p, l)
		}
		if j := c.bestCached(p); j != nil {
			return j
		}
		if j := c.firstByRank(l, p); j != nil {
			return j
		}
	}
	return nil
}

// open finds out which groups of a level the pilot may be given jobs of now.
func (c *Core) open(p *pilot, l *level) bool {
	some := false
	for _, g := range l.groups {
		g.open = c.admits(p, g.class, true)
		some = some || g.open != never
	}
	return some
}

func (c *Core) firstByRank(l *level, p *pilot) *job {
	var best *job
	for _, g := range l.groups {
		var j *job
		switch g.open {
		case always:
			j = c.firstNotKept(g, p)
		case onTime:
			j = c.queue.pastSiteWait(g)
		}
		if j != nil && (best == nil || j.id < best.id) {
			best = j
		}
	}
	return best
}

// pastSiteWait returns the job of the group that has waited for its own site
// for longest, if that was long enough.
func (q *queue) pastSiteWait(g *group) *job {
	if j := q.oldest(g); j != nil && j.readySince.after(g.class.key.wait) <= q.now {
		return j
	}
	return nil
}

// pullOverdue gives the pilot the jobs that were passed over for too long.
// One that needs more than is free reserves the pilot.
func (c *Core) pullOverdue(p *pilot) {
	if j := p.reserved; j != nil {
		if !c.fleet.fitsWhole(p, j.class) {
			c.release(p)
		} else if p.room(j.class, 1) {
			c.assign(j, p)
		}
	}
	for p.reserved == nil {
		j := c.overdue(p)
		if j == nil {
			return
		}
		if p.room(j.class, 1) {
			c.assign(j, p)
		} else {
			p.reserved, c.reserved[j] = j, p
		}
	}
}

// overdue returns the job that has been passed over for longest, if that is
// too long, it fits the pilot and no other drains for it.
func (c *Core) overdue(p *pilot) *job {
	var best *job
	limit := c.now.after(-c.config.MaxPassOver)
	for _, l := range c.queue.levels {
		for _, g := range l.groups {
			j := c.queue.oldest(g)
			if j == nil || j.readySince > limit || c.reserved[j] != nil || best != nil && !j.readyBefore(best) {
				continue
			}
			if c.fleet.fitsWhole(p, g.class) {
				best = j
			}
		}
	}
	return best
}

func (j *job) readyBefore(o *job) bool {
	return j.readySince < o.readySince || j.readySince == o.readySince && j.id < o.id
}

// release lets a pilot take other jobs again.
func (c *Core) release(p *pilot) {
	delete(c.reserved, p.reserved)
	p.reserved = nil
	p.asked = 0
	if c.fleet.takes(p) {
		c.fleet.ask(p)
	}
}

// ask lists a pilot to be given jobs in this step.
func (fl *fleet) ask(p *pilot) {
	if !p.asks {
		p.asks = true
		fl.work.askers = append(fl.work.askers, p)
	}
}

// matchAll brings ready jobs and pilots together. Whoever waits on either
// side was offered everything before, so only what is new in this step is
// looked at: fresh jobs go to a parked pilot that holds more of their input
// than the pilots that ask; those take what suits them best; what is left of
// the fresh jobs goes to any parked pilot that it fits. Jobs that are kept for
// a pilot are offered again when it has asked, or is gone, or their time is up.
func (c *Core) matchAll() {
	w := &c.work
	for len(w.fresh) > 0 || len(w.askers) > 0 || c.kept.look {
		if len(w.askers) > 0 {
			c.placeFresh(w.askers)
			w.askers, c.asked = c.asked[:0], w.askers
			for _, p := range c.asked {
				p.asks = false
			}
			for _, p := range c.asked {
				c.pull(p)
				c.fleet.updateParked(p)
				c.noLongerAwaited(p)
			}
		}
		c.placeFresh(nil)
		for _, j := range w.fresh {
			j.freshly = false
			if j.state == Ready {
				c.offers++
			}
		}
		w.fresh = w.fresh[:0]
		c.placeKept()
	}
}

// assign makes an attempt of the job on the pilot.
func (c *Core) assign(j *job, p *pilot) {
	c.unready(j)
	p.advice.incoming += p.lacking(j)
	c.fleet.lastAttempt++
	a := &attempt{
		id: AttemptID(c.journal.incarnation<<32 | c.fleet.lastAttempt), job: j, pilot: p, needs: j.class,
		try: j.tries() + 1, ahead: !p.room(j.class, 1),
	}
	c.fleet.addAttempt(a)
	if a.ahead {
		c.ahead = append(c.ahead, a)
	}
	c.queue.setState(j, Assigned)
	c.fleet.tell(p)
}

func (j *job) tries() int {
	if j.fate == nil {
		return 0
	}
	return j.fate.Tries + j.fate.Losses
}

func (fl *fleet) addAttempt(a *attempt) {
	a.next, a.job.attempt = a.job.attempt, a
	fl.attempts[a.id] = a
	a.pilot.attempts = append(a.pilot.attempts, a)
	a.pilot.add(a.needs, 1)
	fl.monitor.count(a.pilot)
	fl.updateParked(a.pilot)
}

// removeAttempt forgets an attempt that has ended.
func (fl *fleet) removeAttempt(a *attempt) {
	delete(fl.attempts, a.id)
	if a.recall {
		fl.recalls--
	}
	for at := &a.job.attempt; *at != nil; at = &(*at).next {
		if *at == a {
			*at = a.next
			break
		}
	}
	p := a.pilot
	if i := slices.Index(p.attempts, a); i >= 0 {
		p.attempts = slices.Delete(p.attempts, i, i+1)
	}
	p.add(a.needs, -1)
	p.asked = 0
	fl.monitor.count(p)
	fl.updateParked(p)
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

// siteWaitOver offers the jobs of a group to parked pilots of other sites.
func (c *Core) siteWaitOver(g *group) {
	g.armed = 0
	for {
		j := c.queue.pastSiteWait(g)
		if j == nil {
			break
		}
		p := c.bestParked(j, nil, true)
		if p == nil {
			c.offers++
			break
		}
		c.assign(j, p)
	}
	if j := c.queue.oldest(g); j != nil {
		at := max(j.readySince.after(g.class.key.wait), c.now.after(time.Second))
		g.armed = at
		c.timers.add(timer{at: at, kind: groupTimer, group: g})
	}
}
