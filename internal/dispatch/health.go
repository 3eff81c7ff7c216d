package dispatch

import (
	"slices"
	"time"

	"fairway/internal/dispatch/health"
	"fairway/internal/taskqueue"
)

// What is known against nodes stands in package health. Here it becomes what follows for jobs and pilots.
// Those that failed on a node which is doubted go before other jobs (suspect). Jobs that could run nowhere else are
// given to it all the same.
//
// A step of which jobs failed on most nodes, and succeeded on none meanwhile, says nothing of nodes.

// nodes is what is known against nodes.
type nodes struct {
	health.Book[*job, *attempt]
	armed   instant // when nodesTimer fires; 0: it is not set
	comes   instant // until then, a pilot that was submitted last may be expected
	expects bool    // one was expected at the end of the last transition
}

// node is what is known against one.
type node = health.Node[*job, *attempt]

// pilotComes is how long after its submission a pilot is expected to come soon, so that another try
// waits for it.
const pilotComes = time.Minute

// withholds reports whether the node gets no job now that could run elsewhere.
func (fl *fleet) withholds(h *node) bool { return fl.nodes.Withholds(h, fl.now, fl.allCautious) }

// allCautious reports whether there is no node that may be better.
func (fl *fleet) allCautious() bool {
	for _, at := range fl.hosts {
		if h := at.health; h == nil || !h.Withheld && !fl.nodes.IsCautious(h, fl.now) {
			return false
		}
	}
	return !fl.expects()
}

// doubt is what is known against the node of a pilot on which an attempt has failed.
func (fl *fleet) doubt(p *pilot) *node {
	if p.host.health == nil {
		h, oldest := fl.nodes.Doubt(p.host.name)
		if oldest != nil {
			fl.trust(oldest)
		}
		p.host.health = h
	}
	return p.host.health
}

// trust forgets what is known against a node.
func (fl *fleet) trust(h *node) {
	if at := fl.hosts[h.Name]; fl.nodes.Trust(h) && at != nil && at.health == h {
		at.health = nil
	}
}

// nodeGiven takes note of an attempt that is given to a node on which attempts fail.
func (fl *fleet) nodeGiven(a *attempt) {
	if h := a.pilot.host.health; h != nil && a.gang == nil {
		a.doubts = h
		fl.nodes.Give(h, a, fl.now)
	}
}

// nodeEnded undoes nodeGiven.
func (fl *fleet) nodeEnded(a *attempt) {
	if h := a.doubts; h != nil {
		a.doubts = nil
		fl.nodes.End(h, a)
	}
}

// nodeFailed takes note of an attempt that failed at a pilot, and reports whether its node is to blame, as is
// known.
func (c *Core) nodeFailed(p *pilot, j *job, r *taskqueue.Result) bool {
	if p == nil || c.config.NodeFailures < 0 || j.original.gang() || !health.OfNodeOrJob(r.Outcome) {
		return false
	}
	if h := p.host.health; h != nil && h.IsCondemned() && c.fleet.elsewhere(j.class, h.Name) {
		c.postpone(h)
		c.fleet.nodes.Change(h)
		return true
	}
	others := c.fleet.nodes.FailedElsewhere(j, p.host.name)
	if c.fleet.failsEverywhere(j.step, p.host.name) || others {
		all := c.fleet.failsEverywhere(j.step, j.step.failedOn[0])
		c.fleet.nodes.Acquit(func(o *job) bool { return o == j || all && o.step == j.step })
		return false
	}
	h := c.fleet.doubt(p)
	c.fleet.nodes.Fail(h, j, r.Describe(""), c.now)
	c.armNodes(h.FailedAt.After(c.config.NodePause))
	if c.fleet.nodes.IsDoubted(h) {
		c.postpone(h)
	}
	c.fleet.nodes.Change(h)
	return false
}

// maxFailedOn bounds the nodes that are counted on which a step fails.
const maxFailedOn = 64

// failsEverywhere takes note that a job of the step failed on a node, and reports whether such jobs have failed
// on most nodes that there are since one succeeded.
func (fl *fleet) failsEverywhere(s *step, node string) bool {
	if len(s.failedOn) < maxFailedOn && !slices.Contains(s.failedOn, node) {
		s.failedOn = append(s.failedOn, node)
	}
	all := len(fl.hosts)
	if fl.expects() {
		all++
	}
	return len(s.failedOn) >= min(all/2+1, maxFailedOn)
}

// nodeSucceeded takes note of a job that went well at a pilot. Where it failed before, the node
// was to blame. Its failures on one that is condemned count no more.
func (c *Core) nodeSucceeded(p *pilot, j *job) {
	if len(j.step.failedOn) > 0 {
		j.step.failedOn = nil
	}
	if len(c.fleet.nodes.Doubted()) == 0 || p == nil {
		return
	}
	if h := p.host.health; h != nil {
		if h.Told {
			c.tellOfNode(taskqueue.NodeTrusted, h, "a job has succeeded there")
		}
		c.fleet.trust(h)
	}
	if j.fate == nil {
		return
	}
	for _, h := range c.fleet.nodes.WentWell(j) {
		c.postpone(h)
		for j, times := range h.Blamed() {
			if j.live() && j.fate != nil && j.fate.Tries > 0 {
				j.fate.Tries = max(0, j.fate.Tries-times)
				c.journal.persistFate(j)
			}
		}
		c.tellOfNode(taskqueue.NodeDoubted, h, c.whyDoubted(h))
	}
}

// tellOfNode tells of a node by its host.
func (c *Core) tellOfNode(kind taskqueue.EventKind, h *node, why string) {
	h.Told = kind == taskqueue.NodeDoubted
	c.event(taskqueue.Event{Kind: kind, Host: hostOf(h.Name), Reason: why})
}

// postpone has the node tried later.
func (c *Core) postpone(h *node) {
	if c.fleet.nodes.Postpone(h, c.now) {
		c.armNodes(h.TryAt)
	}
}

// whyDoubted says for a person what is known against a node, and what becomes of it.
func (c *Core) whyDoubted(h *node) string { return c.fleet.nodes.Why(h, c.left(h.TryAt)) }

// reviewNodes looks at the nodes that have changed.
func (c *Core) reviewNodes() {
	for c.fleet.nodes.HasChanged() {
		c.reviewNode(c.fleet.nodes.TakeChanged())
	}
}

// reviewNode has the pilots of a node counted among those that others' jobs may go to, or not, and offers jobs
// to whom they may go now. What waits at a node that gets no more goes back.
func (c *Core) reviewNode(h *node) {
	doubt, noMore, trust := c.fleet.nodes.Review(h, c.now)
	if doubt {
		c.tellOfNode(taskqueue.NodeDoubted, h, c.whyDoubted(h))
	}
	if noMore {
		c.tellOfNode(taskqueue.NodeTrusted, h, "the jobs that failed there failed elsewhere too")
	}
	if trust {
		c.fleet.trust(h)
	}
	gets := !c.fleet.withholds(h)
	is := c.fleet.nodes.IsDoubted(h) && !gets
	at := c.fleet.hosts[h.Name]
	if gets == h.Gets && is == h.Withheld {
		return
	}
	h.Gets, h.Withheld = gets, is
	if at == nil {
		return
	}
	for _, p := range at.pilots {
		p.shape.countHost(p)
		if gets {
			p.seat.askedInVain = 0
			c.fleet.wantsJobs(p)
			continue
		}
		for _, a := range slices.Clone(p.attempts) {
			if a.gang == nil && !h.Tries(a) && !a.started && !a.leaves() && c.fleet.attempts[a.id] == a &&
				is && c.fleet.elsewhere(a.needs, h.Name) {
				c.placement.askBack(a)
			}
		}
	}
	if is {
		c.placement.offerAvoiding()
	}
}

// elsewhere reports whether a job of the class may be expected to run on another node.
func (fl *fleet) elsewhere(cl *class, node string) bool {
	return fl.fitsElsewhere(cl, node) || fl.expects()
}

// fitsElsewhere reports whether a pilot on another host could run the class, which is open, and to
// which jobs are given.
func (fl *fleet) fitsElsewhere(cl *class, name string) bool {
	there := func(p *pilot) bool { return p.counted && p.host.name != name && p.fits(cl) }
	return slices.ContainsFunc(fl.shapes, func(s *shape) bool {
		others := len(s.hosts)
		if s.hosts[name] > 0 {
			others--
		}
		fit := s.fit(cl)
		return others > 0 && (fit == allFit || fit == someFit && slices.ContainsFunc(s.pilots, there))
	})
}

// expects reports whether a pilot that was submitted a short while ago has not come yet.
func (fl *fleet) expects() bool {
	return fl.now < fl.nodes.comes &&
		slices.ContainsFunc(fl.monitor.sites, func(s *site) bool { return s.pilots[inactive] > 0 })
}

// lookForExpected offers jobs that avoid a node to its pilots again, once no other pilot is expected any more:
// it has come, its time is over, or its batch system has lost it.
func (c *Core) lookForExpected() {
	was := c.fleet.nodes.expects
	c.fleet.nodes.expects = c.fleet.expects()
	if was && !c.fleet.nodes.expects {
		c.placement.offerAvoiding()
	}
}

// armNodes has nodes looked at again at a time.
func (c *Core) armNodes(at instant) {
	if at > c.now && (c.fleet.nodes.armed == 0 || at < c.fleet.nodes.armed) {
		c.fleet.nodes.armed = at
		c.timers.add(timer{at: at, kind: nodesTimer})
	}
}

// nodesTimerFired looks which nodes are to be tried, and at jobs that waited for pilots which have not come.
func (c *Core) nodesTimerFired() {
	if c.fleet.nodes.armed > c.now {
		return
	}
	c.fleet.nodes.armed = 0
	for _, h := range c.fleet.nodes.Doubted() {
		c.fleet.nodes.Change(h)
		c.armNodes(h.TryAt)
	}
	c.armNodes(c.fleet.nodes.comes)
	for _, h := range c.fleet.nodes.Doubted() {
		c.armNodes(h.FailedAt.After(c.config.NodePause))
	}
	c.placement.offerAvoiding()
}
