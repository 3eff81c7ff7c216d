package dispatch

import "slices"

// recall takes queued attempts back from pilots that are busy, for parked
// pilots that could start them at once. It is a rare event: jobs are queued at
// pilots only while there are more ready ones than slots.
func (c *Core) recall() {
	if len(c.ahead) == 0 || len(c.spare) == 0 {
		return
	}
	free := -c.recalls
	for _, p := range c.spare {
		free += max(0, p.slots()-len(p.attempts))
	}
	c.ahead = slices.DeleteFunc(c.ahead, func(a *attempt) bool {
		return a.started || a.ended || c.attempts[a.id] != a
	})
	for i := len(c.ahead) - 1; i >= 0 && free > 0; i-- {
		if a := c.ahead[i]; c.waitsItsTurn(a) && c.couldStartElsewhere(a) {
			a.ended, a.recall = true, true
			c.recalls++
			free--
			c.tell(a.pilot)
		}
	}
}

// waitsItsTurn reports whether the attempts given to the pilot before this one
// leave no room for it.
func (c *Core) waitsItsTurn(a *attempt) bool {
	before := a.pilot.used
	defer func() { a.pilot.used = before }()
	p := a.pilot
	p.used = usage{}
	for _, x := range p.attempts {
		if x == a {
			return !p.room(a.needs, 1)
		}
		p.add(x.needs, 1)
	}
	return false
}

func (c *Core) couldStartElsewhere(a *attempt) bool {
	return slices.ContainsFunc(c.spare[:min(len(c.spare), maxPlaces)], func(p *pilot) bool {
		return p != a.pilot && c.mayStart(p, a.job)
	})
}
