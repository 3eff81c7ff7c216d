package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairway/internal/taskqueue"
)

// explainReady says why no pilot has a job that could run.
func (c *Core) explainReady(j *job, e *Explanation) {
	k, ok := c.placement.kept.jobs[j.row]
	switch {
	case j.step.run.halted():
		e.say("ready; its run %s, so it is not started: %s", j.step.run.state.Standing(), j.step.run.reason)
	case c.fleet.stop != running:
		e.say("ready; the run is being ended, and nothing is started any more")
	case !c.fleet.grace.over:
		e.say("ready; the pilots known before the restart have %v to report what they run", c.config.ReconnectGrace)
	case ok && k.holder == nil:
		e.say("ready; kept for site %s, where it is expected to do better, for up to %v", k.site.Name, c.until(k.until))
	case ok:
		e.say("ready; kept for pilot %s, which holds more of its input, for up to %v", k.holder.id, c.until(k.until))
	case j.class.gang():
		c.explainGang(j, e)
		c.explainPreference(j, e)
		c.explainTurn(j, e)
	default:
		c.survey(j).explain(c, e)
		c.explainPreference(j, e)
		c.explainTurn(j, e)
	}
}

// explainGang says how much room there is for a job of several tasks, and what is kept for it.
func (c *Core) explainGang(j *job, e *Explanation) {
	n, s, where := j.class.tasks(), c.placement.standOf(j), "at one site"
	if j.class.key.apart {
		where = "on hosts of one site, one on each"
	}
	e.say("ready; its %d tasks begin together %s: there is room for %d now, and for %d if nothing else ran", n, where,
		min(n, s.free), s.whole)
	switch gt := c.placement.gatheringOf(j); {
	case gt != nil && s.in > 0:
		e.say("room is kept for %d of them; all is expected to be free in %v", s.keeps, s.in.Round(time.Second))
	case gt != nil:
		e.say("room is kept for %d of them; when the rest is free is not known", s.keeps)
	case s.whole >= n:
		e.say("no room is kept for it yet: other jobs are before it, or jobs of several tasks have room kept")
	}
	c.explainGangQuota(j, e)
	if s.whole >= n {
		return
	}
	v := c.survey(j)
	if len(v.sites) == 0 {
		e.Missing = v.short.names()
		e.say("no site could start pilots for it%s", forWantOf(v.short))
	}
	v.explainPilots(e)
	for _, at := range v.sites {
		at.explain(c, e)
	}
}

// explainGangQuota tells of quotas that all tasks together would exceed whatever else runs.
func (c *Core) explainGangQuota(j *job, e *Explanation) {
	n := j.class.tasks()
	cpus := int64(n) * cmp.Or(j.class.key.milliCPUs, minSlot)
	for s := range j.share().Up {
		if q := &s.Said().Limits; q.Running > 0 && n > q.Running {
			e.say("%s may have %d jobs running, each task counts as one, and this job has %d: it cannot run", s.Title(),
				q.Running, n)
		} else if q.MilliCPUs > 0 && cpus > q.MilliCPUs {
			e.say("%s may have %g cores, and the tasks of this job need %g: it cannot run", s.Title(),
				float64(q.MilliCPUs)/1000, float64(cpus)/1000)
		}
	}
}

func (c *Core) explainPreference(j *job, e *Explanation) {
	k := &j.class.key
	until := j.readySince.After(k.wait)
	if k.site == "" || until <= c.now {
		return
	}
	which := ""
	if c.fleet.monitor.site(k.site) == nil {
		which = " (which is not known)"
	}
	e.say("prefers site %s%s for another %v", k.site, which, c.until(until))
}

// survey is what the registered pilots, and those that sites could start, are
// to a ready job.
type survey struct {
	class    *class
	free     int                 // pilots that could run it at once
	busy     int                 // that could when what they run has ended
	drained  []*job              // for whom pilots that could run it drain
	silent   []taskqueue.PilotID // that are not heard
	ending   int                 // that take no more jobs
	broken   []string            // why others take none
	avoided  int                 // on the host where it failed
	doubted  []string            // what is known against nodes that could run it
	pilots   int                 // of which something is known
	failing  map[string]int      // by requirement: how many of them do not have it
	short    shortage
	occupied shortage // what is not free of those that are busy
	sites    []*site  // that could start a pilot for it
}

func (c *Core) survey(j *job) *survey {
	s := &survey{class: j.class, failing: make(map[string]int)}
	for _, p := range c.fleet.inOrder() {
		s.count(c, p, j)
	}
	for _, at := range c.fleet.monitor.sites {
		if l := at.lacks(j.class); len(l) > 0 {
			s.short.add(l)
		} else {
			s.sites = append(s.sites, at)
		}
	}
	return s
}

func (s *survey) count(c *Core, p *pilot, j *job) {
	l := lacks(j.class, p.hasNow(c.now), p.shape.tools)
	k := &j.class.key
	if s.pilots++; p.info.Error == "" {
		for _, n := range l {
			s.failing[n.name]++
		}
	}
	switch {
	case p.info.Error != "":
		s.broken = append(s.broken, p.info.Error)
	case p.lease.silent != 0:
		s.silent = append(s.silent, p.id)
	case !p.willing() || p.expires != 0 && p.expires <= c.now:
		s.ending++
	case len(l) > 0:
		s.short.add(l)
	case k.bound() && p.cache() != cacheID{k.host, k.pilot}:
	case !c.fleet.outlives(p, j.class):
		s.short.add([]unmetNeed{{"time with staging", ofTime, int64(j.class.inAll()), int64(p.hasNow(c.now).Time)}})
	case !c.fleet.fitsWhole(p, j.class) && k.avoid == p.host.name:
		s.avoided++
	case !c.fleet.fitsWhole(p, j.class):
		s.doubts(c, p)
	case p.seat.reserved != nil && p.seat.reserved != j:
		s.drained = append(s.drained, p.seat.reserved)
	case !p.hasRoom(j.class, 1):
		s.busy++
		s.occupied.add(p.lacksNow(j.class))
	default:
		s.free++
	}
}

// doubts tells of a node that gets no jobs, once.
func (s *survey) doubts(c *Core, p *pilot) {
	if h := p.host.health; h != nil {
		why := fmt.Sprintf("node %s: %s", p.info.Host, c.whyDoubted(h))
		if !slices.Contains(s.doubted, why) {
			s.doubted = append(s.doubted, why)
		}
	}
}

// hasNow is what the pilot has, with the life that is left to it.
func (p *pilot) hasNow(now instant) taskqueue.Resources {
	has := p.info.Has
	if p.expires != 0 {
		has.Time = max(1, time.Duration(p.expires-now))
	}
	return has
}

func (s *survey) explain(c *Core, e *Explanation) {
	fitting := s.busy + len(s.drained)
	switch {
	case s.free > 0:
		e.say("ready; waiting for a pilot to ask")
		return
	case fitting > 0:
		e.say("ready; all pilots that it fits are busy: %d%s", fitting, forWantOf(s.occupied))
	case len(s.sites) > 0:
		e.say("ready; no pilot that is there can run it%s", forWantOf(s.short))
	case len(s.short) > 0:
		e.Missing = s.short.names()
		e.say("no pilot, nor one that a site could start, has what it needs: %v", s.short)
	default:
		e.say("no pilot that it fits is registered, and no site is known that could start one")
	}
	if s.free+fitting == 0 && s.short.ofPrograms() {
		e.say("a program must be in PATH where a pilot starts: the keys `modules` and `setup` of a site can put it there")
	}
	s.explainPilots(e)
	s.explainFailing(e)
	for _, at := range s.sites {
		at.explain(c, e)
	}
}

func forWantOf(s shortage) string {
	if len(s) == 0 {
		return ""
	}
	return ", for want of " + s.String()
}

// explainFailing counts the pilots that lack something, by what that is.
func (s *survey) explainFailing(e *Explanation) {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(s.failing)) {
		texts = append(texts, fmt.Sprintf("%s %d", name, s.failing[name]))
	}
	if len(texts) > 0 {
		e.say("pilots that have too little of what it needs, of %d: %s", s.pilots, strings.Join(texts, ", "))
	}
}

// explainPilots tells of the pilots that could run the job but for something
// else.
func (s *survey) explainPilots(e *Explanation) {
	k := &s.class.key
	for _, j := range s.drained[:min(len(s.drained), maxExplained)] {
		e.say("a pilot is kept free for job %s, which has waited long and needs more", j.name)
	}
	if k.bound() {
		e.say("must run where its inputs are, which are kept in caches only: %s%s", k.host, k.pilot)
	}
	if s.avoided > 0 {
		name, _, _ := strings.Cut(k.avoid, taskqueue.NodeSeparator)
		e.say("not again on host %s, while another pilot could run it", name)
	}
	for _, why := range s.doubted[:min(len(s.doubted), maxExplained)] {
		e.say("%s", why)
	}
	for _, why := range s.broken[:min(len(s.broken), maxExplained)] {
		e.say("a pilot cannot work: %s", why)
	}
	for _, id := range s.silent[:min(len(s.silent), maxExplained)] {
		e.say("pilot %s is silent, and gets nothing until it is heard", id)
	}
	if s.ending > 0 {
		e.say("pilots that are about to end and take no more jobs: %d", s.ending)
	}
}

// explain tells what becomes of pilots that the site could start.
func (s *site) explain(c *Core, e *Explanation) {
	var lines []string
	if n := s.inactive(); n > 0 {
		lines = append(lines, fmt.Sprintf("is starting pilots: %d", n))
	} else if s.submitted() >= s.MaxPilots {
		lines = append(lines, fmt.Sprintf("has as many pilots as it may have: %d", s.MaxPilots))
	}
	if s.notBefore > c.now {
		lines = append(lines, fmt.Sprintf("starts none for another %v, since those before could not work: %d",
			c.until(s.notBefore), s.failures))
	}
	if len(lines) > 0 {
		e.say("site %s %s", s.Name, strings.Join(lines, ", and "))
	}
}
