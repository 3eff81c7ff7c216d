package dispatch

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// A pilot ends a command that takes longer than its job says. An attempt of which nothing is heard for longer is one
// that its pilot keeps, though it calls: it is given up, and others get the job. The time counts while the command
// runs: a pilot tells which attempts read inputs or store outputs, up to maxMoving after they began, and a
// silent one cannot tell.

// maxOverran bounds the attempts of one pilot that are known to have been given up like this.
const maxOverran = 1000

// maxMoving is how long after its begin an attempt may still read inputs or store outputs without using up the time
// that its job may run. Later that counts, so that a pilot which says so for ever does not keep the job.
const maxMoving = 24 * time.Hour

// overrunsAt is when the attempt is given up, unless it ends before or moves files; 0: never.
func (c *Core) overrunsAt(a *attempt) instant {
	limit := a.needs.key.time
	if limit <= 0 || c.config.RunMargin < 0 || !a.started || a.told.ended || a.gang != nil && !a.begun {
		return 0
	}
	return max(a.since, a.moved).After(limit).After(c.config.RunMargin)
}

// looksForOverrun has an attempt looked at when its time is over.
func (c *Core) looksForOverrun(a *attempt) {
	if at := c.overrunsAt(a); at != 0 {
		c.fleet.checkLater(a.pilot, at)
	}
}

// takeMoves takes which attempts of a pilot read inputs or store outputs.
func (c *Core) takeMoves(p *pilot, s *taskqueue.Sync) {
	for _, id := range s.MovesFiles {
		if a := c.fleet.attempts[id]; a != nil && a.pilot == p {
			a.moved = min(c.now, a.since.After(maxMoving))
		}
	}
}

// overran gives up an attempt whose time is over, and returns 0. Where the pilot is silent or the TaskQueue itself
// stood still, nobody knows what the pilot would have told: the time begins anew. It returns when that is over.
func (c *Core) overran(a *attempt, at instant) instant {
	p := a.pilot
	if p.lease.silent != 0 || c.now >= at.After(c.config.Silence) {
		a.moved = c.now
		return c.overrunsAt(a)
	}
	if len(p.record.overran) == maxOverran {
		p.record.overran = slices.Delete(p.record.overran, 0, 1)
	}
	p.record.overran = append(p.record.overran, a.id)
	c.attemptLost(a, fmt.Sprintf("its pilot has not ended it %v after the %v that it may run", c.config.RunMargin,
		time.Duration(a.needs.key.time)))
	c.fleet.endUnknown(p, a.id)
	return 0
}
