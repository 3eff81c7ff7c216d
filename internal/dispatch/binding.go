package dispatch

import (
	"errors"
	"fmt"
	"slices"

	"fairway/internal/dispatch/fairtree"
)

// CheckBinding returns an error that names a job that is bound to a pilot when it should not be.
// There is none, unless the Core has a fault; simulations ask after each step. It looks at all
// attempts. What was just given is what the last transition gave: another one at the same instant may
// have changed who is next.
//
//   - Nothing waits at a silent pilot, and silence is noticed when it begins.
//   - What a pilot was asked for is given back in time, or forfeited.
//   - No pilot is idle beside a ready job that it could begin and that is kept for no other.
//   - No attempt waits at a pilot for long beside an idle one that could begin it, and for which
//     no other attempt is being taken back.
//   - No job was just given to a pilot before one of a higher priority that needs the same, was
//     ready before, and is kept for no other pilot. One that was passed over for
//     Config.MaxPassOver may be.
//   - No user was just given a slot who has got more than Shares.Overtake ahead of the share,
//     relative to another one with such a job that is ready the same.
func (c *Core) CheckBinding() error {
	if err := c.placement.checkGatherings(); err != nil {
		return err
	}
	for _, p := range c.fleet.pilots {
		if at := c.fleet.silentAt(p); at != 0 && at < c.now {
			return fmt.Errorf("pilot %s is silent, and that is not noticed", p.id)
		}
		if j := c.passedOver(p); j != nil {
			return fmt.Errorf("pilot %s is idle, and could begin job %s, which is ready", p.id, j.name)
		}
		for _, a := range p.attempts {
			if err := c.checkAttempt(a); err != nil {
				return fmt.Errorf("job %s is bound to pilot %s: %w", a.job.name, p.id, err)
			}
		}
	}
	return nil
}

func (c *Core) checkAttempt(a *attempt) error {
	if c.fleet.isNew(a) && a.gang == nil && a.pilot.seat.gathering == nil {
		if j := c.outranked(a); j != nil {
			return fmt.Errorf("job %s of priority %d is ready, and this one has priority %d", j.name, j.effective, a.priority)
		}
		if j := c.behind(a); j != nil {
			return fmt.Errorf("job %s of %s is ready, and %s has used more for its weight", j.name, j.share().Title(),
				a.job.share().Title())
		}
	}
	late := c.now.After(-2 * overdueAfter * c.config.AheadTime)
	switch {
	case a.started || a.told.ended:
	case a.pilot.lease.silent != 0:
		return errors.New("it has not begun, and the pilot is silent")
	case a.told.asked != 0 && a.returnedBy(&c.config) < c.now:
		return errors.New("the pilot was asked for it, and has not given it back")
	case a.told.asked == 0 && a.ahead && a.waitsItsTurn() && a.given < late && c.placement.unclaimed() > 0 &&
		c.placement.couldStartElsewhere(a):
		return errors.New("it waits there for long, and another pilot is idle")
	}
	return nil
}

// passedOver returns a ready job that a parked pilot could begin.
func (c *Core) passedOver(p *pilot) *job {
	if p.seat.parked == 0 || p.seat.reserved != nil || p.seat.gathering != nil || c.fleet.stop != running {
		return nil
	}
	pl := &c.placement
	for l := range c.jobs.levels {
		for _, g := range l.groups {
			j := c.jobs.oldest(g)
			if j == nil || !pl.mayStart(p, j) || pl.delayed.jobs[j.row].until > c.now {
				continue
			}
			if holder, _ := pl.worthWaitingFor(j, p); holder != nil {
				continue
			}
			if better, _ := pl.betterSite(j, p); better == nil {
				return j
			}
		}
	}
	return nil
}

// outranked returns a ready job that should have been given to the pilot in place of the attempt.
func (c *Core) outranked(a *attempt) *job {
	if a.job.readySince <= c.now.After(-c.config.MaxPassOver) {
		return nil
	}
	for _, l := range a.job.share().Own.levels {
		if l.priority <= a.priority {
			continue
		}
		for _, g := range l.groups {
			j := c.jobs.oldest(g)
			if j != nil && g.class == a.needs && j.readySince != c.now && c.wouldBeGiven(j, a) {
				return j
			}
		}
	}
	return nil
}

// behind returns a ready job that the pilot could have been given in place of the attempt, of a user
// who has used so much less for the weight that this one should not have been overtaken.
func (c *Core) behind(a *attempt) *job {
	s := a.job.share()
	given := 0
	for _, x := range a.pilot.attempts {
		if c.fleet.isNew(x) {
			given++
		}
	}
	if c.shares.Alone() || given > 1 || a.job.readySince <= c.now.After(-c.config.MaxPassOver) ||
		a.job.fate != nil && a.job.fate.takenBack > 0 {
		return nil
	}
	bound := max(c.shares.overtake(), 0).Seconds() + 1
	for o := range c.shares.InOrder {
		if o == s || c.shares.Ahead(c.now, s, o) <= bound || c.shares.Ahead(c.now, s, o)-c.chargedNow(s, o) <= bound {
			continue
		}
		for _, l := range o.Own.levels {
			for _, g := range l.groups {
				j := c.jobs.oldest(g)
				if j == nil || g.class != a.needs || j.readySince == c.now || len(g.class.pools) > 0 {
					continue
				}
				if c.wouldBeGiven(j, a) && c.placement.withinQuota(o, g.class, a.pilot, nil) {
					return j
				}
			}
		}
	}
	return nil
}

// chargedNow is what this transition has charged to a user, and to those who share with the user what
// another one has no part in: a gang among it, which may have been given out after what is looked at.
func (c *Core) chargedNow(s, than *share) (sum float64) {
	branch, _ := fairtree.Apart(s, than)
	for _, p := range c.fleet.pilots {
		for _, a := range p.attempts {
			if c.fleet.isNew(a) && slices.Contains(slices.Collect(a.job.share().Up), branch) {
				sum += a.cost.charge
			}
		}
	}
	return sum
}

// wouldBeGiven reports whether a ready job is kept for no pilot but that of the attempt.
func (c *Core) wouldBeGiven(j *job, a *attempt) bool {
	if c.placement.delayed.jobs[j.row].until > c.now {
		return false
	}
	holder, _ := c.placement.worthWaitingFor(j, a.pilot)
	better, _ := c.placement.betterSite(j, a.pilot)
	return holder == nil && better == nil && !c.wasKept(j, a)
}

// wasKept reports whether the job may have been kept, until now, for a pilot that was just given
// another job.
func (c *Core) wasKept(j *job, instead *attempt) bool {
	return slices.ContainsFunc(j.requests, func(r request) bool {
		return r.read != nil && slices.ContainsFunc(r.read.holders, func(p *pilot) bool {
			return slices.ContainsFunc(p.attempts, func(a *attempt) bool { return a != instead && a.given == c.now })
		})
	})
}
