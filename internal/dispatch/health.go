package dispatch

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// A failure may be the job's or the node's. Nobody knows which when it comes, so the next attempt goes
// to another node, and that tells: of a job that goes well there the node before is to blame, and one
// that fails there too has itself to blame.
//
// Until that is known a node may fail all that it is given, faster than any other works. So while all
// attempts fail that end there, it gets fewer and fewer: it is doubted when Config.NodeFailures jobs
// failed there in a row, and gets none before they have ended elsewhere, where they go before other jobs. When
// several of them went well elsewhere it is condemned: their failures there count as none of theirs.
// A node that is doubted or condemned is tried
// with one job after Config.NodePause, which doubles with each that fails; one
// that succeeds clears it. Jobs that could run nowhere else are given to it all the same.
//
// A step of which jobs failed on most nodes, and succeeded on none meanwhile, says nothing of nodes.
//
// Nothing of it is durable: after a restart each node is trusted again.

// nodes is what is known against nodes.
type nodes struct {
	doubted []*health // those on which attempts failed since one succeeded, the oldest first
	armed   instant   // when healthTimer fires; 0: it is not set
	comes   instant   // until then, a pilot that was submitted last may be expected
	expects bool      // one was expected at the end of the last transition
}

// maxDoubted bounds the nodes of which failures are remembered; the oldest are trusted again.
const maxDoubted = 1024

// condemning is how many jobs that failed on a node are to go well elsewhere before it is condemned.
const condemning = 3

// pilotComes is how long after its submission a pilot is expected to come soon, so that another try
// waits for it.
const pilotComes = time.Minute

// maxNodePause bounds the pause between jobs that try a node.
const maxNodePause = time.Hour

// health is what is known against one node. It outlives the node's pilots.
type health struct {
	node      string
	failed    []failure // the jobs that failed there since one succeeded, at most maxFailures
	given     int       // attempts that were given out there since the first of these, and have not ended
	trial     *attempt  // the one that tries the node
	failedAt  instant   // when one failed last
	tryAt     instant   // when it may be tried with one
	pauses    int       // that have passed
	condemned bool
	possibly  int  // jobs for whose failure the node may be to blame
	surely    int  // and those of them that went well elsewhere
	gets      bool // jobs, as its pilots know
	withheld  bool // it is doubted and gets none, so that its pilots are not counted
	told      bool // that it is doubted
	trusted   bool // nothing is known against it any more
}

// maxFailures bounds health.failed; an older one is forgotten.
const maxFailures = 64

// failure is of one job on one node.
type failure struct {
	job   *job
	times int
	what  string
	found verdict
}

// verdict is what became elsewhere of a job that failed on a node.
type verdict uint8

const (
	open     verdict = iota // it has not ended elsewhere
	ofNode                  // it went well
	ofTheJob                // it failed there too
)

// count counts anew, after a change of what failed.
func (h *health) count() {
	h.possibly, h.surely = 0, 0
	for i := range h.failed {
		switch h.failed[i].found {
		case open:
			h.possibly++
		case ofNode:
			h.possibly++
			h.surely++
		}
	}
}

// isDoubted reports whether the node is only tried.
func (fl *fleet) isDoubted(h *health) bool {
	return h.condemned || h.possibly >= fl.config.NodeFailures
}

// withholds reports whether the node gets no job now that could run elsewhere.
func (fl *fleet) withholds(h *health) bool {
	if fl.isDoubted(h) {
		return h.trial != nil || fl.now < h.tryAt
	}
	return fl.isCautious(h) && !fl.allCautious()
}

// isCautious reports whether the node has as many jobs as it may have while those that end there fail. It
// may have more when they last.
func (fl *fleet) isCautious(h *health) bool {
	return h.possibly > 0 && h.given >= fl.config.NodeFailures-h.possibly && fl.now < h.failedAt.After(fl.config.NodePause)
}

// allCautious reports whether there is no node that may be better.
func (fl *fleet) allCautious() bool {
	for _, at := range fl.hosts {
		if h := at.health; h == nil || !h.withheld && !fl.isCautious(h) {
			return false
		}
	}
	return !fl.expects()
}

// healthOf is what is known against a node, nil if nothing is.
func (fl *fleet) healthOf(node string) *health {
	for _, h := range fl.nodes.doubted {
		if h.node == node {
			return h
		}
	}
	return nil
}

// doubt is healthOf, for a node on which an attempt has failed.
func (fl *fleet) doubt(p *pilot) *health {
	if h := p.host.health; h != nil {
		return h
	}
	h := &health{node: p.host.name, gets: true}
	if len(fl.nodes.doubted) == maxDoubted {
		fl.trust(fl.nodes.doubted[0])
	}
	fl.nodes.doubted = append(fl.nodes.doubted, h)
	p.host.health = h
	return h
}

// trust forgets what is known against a node.
func (fl *fleet) trust(h *health) {
	if h.trusted {
		return
	}
	fl.nodes.doubted = slices.DeleteFunc(fl.nodes.doubted, func(o *health) bool { return o == h })
	h.failed, h.condemned, h.trial, h.trusted = nil, false, nil, true
	fl.nodeChanged(h)
	if at := fl.hosts[h.node]; at != nil && at.health == h {
		at.health = nil
	}
}

// nodeChanged has what follows for a node looked at in this transition.
func (fl *fleet) nodeChanged(h *health) {
	h.count()
	fl.work.nodes = append(fl.work.nodes, h)
}

// nodeGiven takes note of an attempt that is given to a node on which attempts fail.
func (fl *fleet) nodeGiven(a *attempt) {
	h := a.pilot.host.health
	if h == nil || a.gang != nil {
		return
	}
	a.doubts = h
	h.given++
	if fl.isDoubted(h) && h.trial == nil && fl.now >= h.tryAt {
		h.trial = a
	}
	fl.nodeChanged(h)
}

// nodeEnded undoes nodeGiven.
func (fl *fleet) nodeEnded(a *attempt) {
	h := a.doubts
	if h == nil {
		return
	}
	a.doubts = nil
	h.given--
	if h.trial == a {
		h.trial = nil
	}
	fl.nodeChanged(h)
}

// nodeFailed takes note of an attempt that failed at a pilot, and reports whether its node is to blame, as is
// known.
func (c *Core) nodeFailed(p *pilot, j *job, r *taskqueue.Result) bool {
	if p == nil || c.config.NodeFailures < 0 || j.original.gang() || !ofNodeOrJob(r.Outcome) {
		return false
	}
	if h := p.host.health; h != nil && h.condemned && c.fleet.elsewhere(j.class, h.node) {
		c.postpone(h)
		c.fleet.nodeChanged(h)
		return true
	}
	others := c.fleet.failedElsewhere(j, p.host.name)
	if c.fleet.failsEverywhere(j.step, p.host.name) || others {
		c.acquit(j)
		return false
	}
	h := c.fleet.doubt(p)
	h.add(j, r.Describe(""))
	h.count()
	h.failedAt = c.now
	c.armNodes(h.failedAt.After(c.config.NodePause))
	if c.fleet.isDoubted(h) {
		c.postpone(h)
	}
	c.fleet.nodeChanged(h)
	return false
}

// ofNodeOrJob reports whether either may be to blame for an end. Nobody else can exceed what a job says
// that it needs, or change its inputs, and a pilot that is lost says nothing of what ran there.
func ofNodeOrJob(o taskqueue.Outcome) bool {
	return o == taskqueue.Exited || o == taskqueue.Signalled || o == taskqueue.MissingOutput ||
		o == taskqueue.StageInFailed || o == taskqueue.StageOutFailed ||
		o == taskqueue.OutOfDisk
}

func (h *health) add(j *job, what string) {
	for i := range h.failed {
		if f := &h.failed[i]; f.job == j {
			f.times, f.what, f.found = f.times+1, what, open
			return
		}
	}
	if len(h.failed) == maxFailures {
		h.failed = slices.Delete(h.failed, 0, 1)
	}
	h.failed = append(h.failed, failure{job: j, times: 1, what: what})
}

// forgetFailures forgets those of a run.
func (fl *fleet) forgetFailures(id taskqueue.RunID) {
	for _, h := range fl.nodes.doubted {
		h.failed = slices.DeleteFunc(h.failed, func(f failure) bool { return f.job.id.Run() == id })
		fl.nodeChanged(h)
	}
}

// failedElsewhere reports whether the job has failed on another node that has done better than
// to fail alone, and so is not to blame.
func (fl *fleet) failedElsewhere(j *job, node string) bool {
	some := false
	for _, h := range fl.nodes.doubted {
		i := slices.IndexFunc(h.failed, func(f failure) bool { return f.job == j })
		if i < 0 || h.node == node || h.condemned {
			continue
		}
		some = some || h.possibly < 2
	}
	if own := fl.healthOf(node); own != nil {
		return some && own.possibly < 2
	}
	return some
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

// acquit takes a failure of the job, and of those of its step if that fails everywhere, for its own.
func (c *Core) acquit(j *job) {
	s := j.step
	all := c.fleet.failsEverywhere(s, s.failedOn[0])
	for _, h := range slices.Clone(c.fleet.nodes.doubted) {
		for i := range h.failed {
			if f := &h.failed[i]; f.found == open && (f.job == j || all && f.job.step == s) {
				f.found = ofTheJob
			}
		}
		c.fleet.nodeChanged(h)
	}
}

// nodeSucceeded takes note of a job that went well at a pilot. Where it failed before, the node
// was to blame.
func (c *Core) nodeSucceeded(p *pilot, j *job) {
	if len(j.step.failedOn) > 0 {
		j.step.failedOn = nil
	}
	if len(c.fleet.nodes.doubted) == 0 || p == nil {
		return
	}
	if h := p.host.health; h != nil {
		if h.told {
			c.tellOfNode(taskqueue.NodeTrusted, h, "a job has succeeded there")
		}
		c.fleet.trust(h)
	}
	if j.fate == nil {
		return
	}
	for _, h := range c.fleet.nodes.doubted {
		for i := range h.failed {
			if f := &h.failed[i]; f.job == j && f.found == open {
				f.found = ofNode
				c.condemn(h)
				c.fleet.nodeChanged(h)
			}
		}
	}
}

// condemn has a node pay for its failures if enough is known against it.
func (c *Core) condemn(h *health) {
	h.count()
	if h.condemned || h.surely < condemning || h.possibly < c.config.NodeFailures {
		return
	}
	h.condemned = true
	if h.tryAt <= c.now {
		c.postpone(h)
	}
	for i := range h.failed {
		f := &h.failed[i]
		if j := f.job; f.found != ofTheJob && j.live() && j.fate != nil && j.fate.Tries > 0 {
			j.fate.Tries = max(0, j.fate.Tries-f.times)
			c.journal.persistFate(j)
		}
	}
	c.tellOfNode(taskqueue.NodeDoubted, h, c.whyDoubted(h))
}

// tellOfNode tells of a node by its host.
func (c *Core) tellOfNode(kind taskqueue.EventKind, h *health, why string) {
	h.told = kind == taskqueue.NodeDoubted
	c.event(taskqueue.Event{Kind: kind, Host: hostOf(h.node), Reason: why})
}

// postpone has the node tried later.
func (c *Core) postpone(h *health) {
	if h.tryAt > c.now {
		return
	}
	pause := c.config.NodePause
	for n := 0; n < h.pauses && pause < maxNodePause; n++ {
		pause *= 2
	}
	h.pauses++
	h.tryAt = c.now.After(min(pause, maxNodePause))
	c.armNodes(h.tryAt)
}

// whyDoubted says for a person what is known against a node, and what becomes of it.
func (c *Core) whyDoubted(h *health) string {
	text := fmt.Sprintf("the last %s there failed", quantity.Count(int64(h.possibly), "job"))
	if len(h.failed) > 0 {
		text += ", the last with " + h.failed[len(h.failed)-1].what
	}
	if !c.fleet.isDoubted(h) {
		return text + "; it gets more when one goes well there"
	}
	next := "it is tried with one " + c.left(h.tryAt).String()
	if h.trial != nil {
		next = "it is tried with one now"
	}
	if h.condemned {
		return fmt.Sprintf("%s, and %d of them went well elsewhere; it gets no more, and %s", text, h.surely, next)
	}
	return text + "; it gets no more before they have ended elsewhere, or " + next
}

// reviewNodes looks at the listed nodes.
func (c *Core) reviewNodes() {
	for len(c.work.nodes) > 0 {
		c.reviewNode(pop(&c.work.nodes))
	}
}

// reviewNode has the pilots of a node counted among those that others' jobs may go to, or not, and offers jobs
// to whom they may go now. What waits at a node that gets no more goes back.
func (c *Core) reviewNode(h *health) {
	switch doubted := c.fleet.isDoubted(h); {
	case doubted && !h.told && h.pauses > 0 && c.now >= h.tryAt: // before, it mostly comes to nothing
		c.tellOfNode(taskqueue.NodeDoubted, h, c.whyDoubted(h))
	case !doubted:
		h.tryAt, h.pauses = 0, 0
		if h.told {
			c.tellOfNode(taskqueue.NodeTrusted, h, "the jobs that failed there failed elsewhere too")
		}
	}
	if h.possibly == 0 && !h.condemned {
		c.fleet.trust(h)
	}
	gets, is := !c.fleet.withholds(h), c.fleet.isDoubted(h) && c.fleet.withholds(h)
	at := c.fleet.hosts[h.node]
	if gets == h.gets && is == h.withheld {
		return
	}
	h.gets, h.withheld = gets, is
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
			if a.gang == nil && a != h.trial && !a.started && !a.leaves() && c.fleet.attempts[a.id] == a &&
				is && c.fleet.elsewhere(a.needs, h.node) {
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
	for _, h := range c.fleet.nodes.doubted {
		c.fleet.nodeChanged(h)
		c.armNodes(h.tryAt)
	}
	c.armNodes(c.fleet.nodes.comes)
	for _, h := range c.fleet.nodes.doubted {
		c.armNodes(h.failedAt.After(c.config.NodePause))
	}
	c.placement.offerAvoiding()
}
