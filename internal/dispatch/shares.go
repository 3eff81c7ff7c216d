package dispatch

import (
	"time"

	"fairway/internal/dispatch/fairtree"
	"fairway/internal/taskqueue"
)

// shares is who is next: the Fair Tree of groups and users, and what limits all runs together have.
//
// A job that is ready counts as ready in the tree. Usage is counted in slot-seconds: the dominant part
// of a pilot that an attempt takes, in slots, times how long. It is charged as expected when the
// attempt is given out, and settled when that ends.
type shares struct {
	*transition
	*fairtree.Tree[account]
	journal *journal

	dirty []*share // users whose usage is not recorded yet
	armed instant

	pools map[string]*pool // limits over all runs
	freed bool             // something was given back for want of which jobs wait
}

// share is a group or a user.
type share = fairtree.Node[account]

// account is what there is of a user: ready jobs and runs.
type account struct {
	levels  []*level // of ready jobs, by priority, highest first
	groups  map[groupKey]*group
	runs    []*run
	unsaved bool   // in shares.dirty
	queue   []*job // in use within byTurn only
	none    uint64 // value of placement.pulls when it had no job that was overdue
}

type groupKey struct {
	class    *class
	priority int32
}

func newShares(s *transition, jn *journal) shares {
	return shares{transition: s, Tree: fairtree.New[account](), journal: jn}
}

// setShares says anew how users and groups share.
func (c *Core) setShares(said taskqueue.Shares) error {
	if err := said.Check(); err != nil {
		return err
	}
	c.shares.arrange(said)
	c.journal.persistShares(said)
	c.jobs.drawAgain()
	for _, s := range c.fleet.shapes {
		s.fitOf = s.fitOf[:0]
	}
	c.shares.freed = true
	c.fleet.monitor.changed = true
	return nil
}

// arrange gives all shares the weights and limits that were said.
func (sh *shares) arrange(said taskqueue.Shares) {
	sh.Arrange(sh.now, said)
	sh.pools = setPools(sh.pools, said.Limits)
}

// usagePeriod is how long usage may be counted and not recorded yet.
const usagePeriod = 10 * time.Second

// slotsOf is how many slots of a pilot an attempt takes: the largest part that it needs of
// anything that the pilot has, in slots.
func slotsOf(p *pilot, cl *class) float64 {
	has, k := &p.info.Has, &cl.key
	part := float64(p.cpusOf(cl)) / float64(p.totalCPUs())
	if k.memory > 0 {
		part = max(part, float64(k.memory)/float64(max(has.Memory, 1)))
	}
	if k.disk > 0 {
		part = max(part, float64(k.disk)/float64(max(has.Disk, 1)))
	}
	for _, n := range cl.countable {
		if most := thousandths(has.Countable[n.name]); most > 0 {
			part = max(part, float64(n.n)/float64(most))
		}
	}
	return min(part, 1) * float64(p.totalCPUs()) / minSlot
}

// begin charges an attempt that was given out.
func (sh *shares) begin(a *attempt, run func(*job) time.Duration) {
	if a.cost.pools = a.needs.pools; a.cost.pools != nil {
		sh.grants(a.cost.pools, 1)
	}
	if sh.Alone() {
		return
	}
	a.cost.slots = slotsOf(a.pilot, a.needs)
	a.cost.charge = a.cost.slots * run(a.job).Seconds()
	a.cost.cpus = a.pilot.cpusOf(a.needs)
	sh.Charge(sh.now, a.job.share(), a.cost.charge, a.site(), a.amount())
}

// grants takes (sign 1) what the class needs of pools, or gives it back (sign -1).
func (sh *shares) grants(pools []poolNeed, sign int64) {
	for _, x := range pools {
		x.pool.used += sign * x.n
		if sign < 0 && x.pool.stopped {
			x.pool.stopped = false
			sh.freed = true
		}
	}
}

// end settles what an attempt has used.
func (sh *shares) end(a *attempt) {
	sh.grants(a.cost.pools, -1)
	if a.cost.slots == 0 { // it was not charged
		return
	}
	used := a.cost.slots * a.occupied(sh.now).Seconds()
	if sh.Settle(sh.now, a.job.share(), a.given, a.cost.charge, used, a.site(), a.amount()) {
		sh.freed = true
	}
	a.cost.slots = 0
	if used > 0 {
		sh.save(a.job.share())
	}
}

// gaveBack has parked pilots ask again if the user, or a group of that, was kept from more.
func (sh *shares) gaveBack(user *share) {
	if user.GaveBack() {
		sh.freed = true
	}
}

func (a *attempt) site() string { return a.pilot.launch.site.Name }

// occupied is how long an attempt has kept its slots: as its pilot measured, else since it was
// known to run.
func (a *attempt) occupied(now instant) time.Duration {
	since := a.given
	if a.adopted {
		since = a.job.text.submitted
	}
	switch {
	case a.took > 0:
		return min(a.took, time.Duration(now-since))
	case a.started:
		return time.Duration(now - a.since)
	}
	return 0
}

// save has the usage of a user recorded within usagePeriod.
func (sh *shares) save(s *share) {
	if s.Own.unsaved || sh.IsNobody(s) {
		return
	}
	s.Own.unsaved = true
	sh.dirty = append(sh.dirty, s)
	if sh.armed == 0 {
		sh.armed = sh.now.After(usagePeriod)
		sh.timers.add(timer{at: sh.armed, kind: usageTimer})
	}
}

// saveAll records the usage of those whose usage has changed.
func (sh *shares) saveAll() {
	sh.armed = 0
	for _, s := range sh.dirty {
		s.Own.unsaved = false
		sh.journal.persistUsage(s, sh.Settled(sh.now, s))
	}
	sh.dirty = emptied(sh.dirty)
}
