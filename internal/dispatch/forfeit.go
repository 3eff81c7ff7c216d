package dispatch

import (
	"slices"

	"fairway/internal/taskqueue"
)

// A pilot forfeits an attempt that it has not started, as far as it has told, when it does
// not give it back in time, or falls silent. The job is given to another pilot at once. The
// pilot is told to end the attempt when it is heard again; that it may have started it
// meanwhile does no harm: the first success of a job is committed, whichever attempt it is
// of, and what others have stored is removed.

// overdueAfter is after how many times Config.AheadTime an attempt is late that has not
// started.
const overdueAfter = 2

// isLate reports whether the attempt should have started by now.
func (a *attempt) isLate(now instant, c *taskqueue.Config) bool {
	return !a.started && now >= a.given.After(overdueAfter*c.AheadTime)
}

// returnedBy is until when the pilot is to have told that it has given back what it was
// asked for. One that asks now and then only hears of it when it asks next.
func (a *attempt) returnedBy(c *taskqueue.Config) instant {
	return max(a.told.asked, a.pilot.lease.due).After(c.Silence)
}

// checkLater has the attempts that wait at the pilot looked at.
func (fl *fleet) checkLater(p *pilot, at instant) {
	if p.checkAt == 0 || at < p.checkAt {
		p.checkAt = at
		fl.armPilot(p)
	}
}

// checkQueue looks at the attempts that wait at a pilot. Late ones are asked back where they wait
// for others. Those that the pilot should have begun may go to any pilot that is idle, and stay
// where none is: they would only come back. Those that the pilot was asked for and has not given
// back are forfeited.
func (c *Core) checkQueue(p *pilot) {
	p.checkAt = 0
	var next instant
	later := func(at instant) {
		if next == 0 || at < next {
			next = at
		}
	}
	for _, a := range slices.Clone(p.attempts) {
		switch g := c.fleet.current(a); {
		case g != nil && !g.begins && a.started && p.lease.silent != 0: // it keeps the others waiting
			if at := p.lease.silent.After(c.config.PilotLease); at > c.now {
				later(at)
			} else {
				c.placement.restart(g)
			}
		case c.fleet.attempts[a.id] == a && c.overrunsAt(a) != 0:
			at := c.overrunsAt(a)
			if at <= c.now {
				at = c.overran(a, at)
			}
			if at != 0 {
				later(at)
			}
		case a.started || a.told.ended || c.fleet.attempts[a.id] != a:
		case a.gang != nil: // the others wait for it
			if at := a.given.After(c.config.MaxPassOver); at > c.now {
				later(at)
			} else {
				c.forfeit(a)
			}
		case a.told.asked != 0 && a.returnedBy(&c.config) <= c.now:
			p.record.withholds = true
			c.forfeit(a)
		case a.told.asked != 0:
			later(a.returnedBy(&c.config))
		case !a.isLate(c.now, &c.config):
			later(a.given.After(overdueAfter * c.config.AheadTime))
		case a.ahead && a.waitsItsTurn():
			c.placement.askBack(a)
		case !a.ahead:
			a.ahead = true
			c.fleet.waitAhead(a)
		}
	}
	c.fleet.recount(p)
	if next != 0 {
		c.fleet.checkLater(p, next)
	}
}

// forfeit gives a job out again whose attempt a pilot has not started, as far as it has told.
func (c *Core) forfeit(a *attempt) {
	if g := c.fleet.current(a); g != nil {
		c.placement.restart(g)
		return
	}
	p := a.pilot
	c.fleet.removeAttempt(a)
	c.fleet.endUnknown(p, a.id)
	c.placement.requeue(a.job)
}

// forfeitAll gives out all jobs again that wait at a pilot.
func (c *Core) forfeitAll(p *pilot) {
	for _, a := range slices.Clone(p.attempts) {
		switch g := c.fleet.current(a); {
		case c.fleet.attempts[a.id] != a: // it has gone with another one of its gang
		case g != nil && !a.started:
			c.placement.restart(g)
		case g != nil && !g.begins:
			c.fleet.checkLater(p, p.lease.silent.After(c.config.PilotLease))
		case a.started:
		case a.told.number == 0 && !a.known(): // it has not heard of it
			c.fleet.removeAttempt(a)
			c.placement.requeue(a.job)
		default:
			c.forfeit(a)
		}
	}
}
