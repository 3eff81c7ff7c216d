package dispatch

import (
	"time"

	"fairway/internal/dispatch/fairtree"
	"fairway/internal/dispatch/pools"
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

	armed instant // when usage is recorded; 0: all is

	pools pools.Set[*job] // limits over all runs
	freed bool            // something was given back for want of which jobs wait
}

// share is a group or a user.
type share = fairtree.Node[account]

// account is what there is of a user: ready jobs and runs.
type account struct {
	levels []*level // of ready jobs, by priority, highest first
	groups map[groupKey]*group
	runs   []*run
	queue  []*job // in use within byTurn only
	none   uint64 // value of placement.pulls when it had no job that was overdue
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
	c.jobs.drawOnPoolsAgain()
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
	sh.pools = sh.pools.Limited(said.Limits)
}

// usagePeriod is how long usage may be counted and not recorded yet.
const usagePeriod = 10 * time.Second

// chargeAttempt charges an attempt that was given out.
func (sh *shares) chargeAttempt(a *attempt, run func(*job) time.Duration) {
	a.cost.pools = a.needs.pools
	a.cost.pools.Grant()
	if sh.Alone() {
		return
	}
	a.cost.slots = a.pilot.room.SlotsOf(&a.needs.takes)
	a.cost.charge = a.cost.slots * run(a.job).Seconds()
	a.cost.cpus = a.pilot.room.CPUsOf(&a.needs.takes)
	sh.Charge(sh.now, a.job.share(), a.cost.charge, a.site(), a.amount())
}

// settleAttempt settles what an attempt has used.
func (sh *shares) settleAttempt(a *attempt) {
	if a.cost.pools.GiveBack() {
		sh.freed = true
	}
	if a.cost.slots == 0 { // it was not charged
		return
	}
	used := a.cost.slots * a.occupied(sh.now).Seconds()
	if sh.Settle(sh.now, a.job.share(), a.given, a.cost.charge, used, a.site(), a.amount()) {
		sh.freed = true
	}
	a.cost.slots = 0
	if sh.armed == 0 && sh.HasUnsaved() {
		sh.armed = sh.now.After(usagePeriod)
		sh.timers.add(timer{at: sh.armed, kind: usageTimer})
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

// saveAll records the usage of those whose usage has changed.
func (sh *shares) saveAll() {
	sh.armed = 0
	for _, s := range sh.TakeUnsaved() {
		sh.journal.persistUsage(s, sh.Settled(sh.now, s))
	}
}
