package dispatch

import (
	"fmt"
	"slices"

	"fairway/internal/taskqueue"
)

// dropPilot forgets a pilot with its cache; what it ran is lost.
func (c *Core) dropPilot(p *pilot, reason string) {
	if p.left {
		return
	}
	p.left = true
	delete(c.fleet.pilots, p.id)
	if p.talk.heldSeq != 0 {
		c.reply(p, taskqueue.Answer{NeedFull: true})
		p.talk.heldSeq = 0
	}
	c.fleet.unplace(p)
	c.placement.offerAvoiding()
	c.fleet.arrivalsEnd(p)
	c.fleet.peersChanged(p)
	c.fleet.recount(p)
	c.placement.noLongerAwaited(p)
	c.placement.expectNothing(p)
	if p.seat.reserved != nil {
		delete(c.placement.reserved, p.seat.reserved)
		p.seat.reserved = nil
	}
	for len(p.copies.versions) > 0 {
		c.dropCopy(p, p.copies.versions[len(p.copies.versions)-1])
	}
	p.copies.other.Clear()
	if at := p.cache(); !c.fleet.exists(at) {
		c.placement.unbind(at)
	}
	for _, a := range slices.Clone(p.attempts) {
		c.attemptLost(a, fmt.Sprintf("pilot %s %s", p.id, reason))
	}
	c.endAwaiting(p.id)
	c.journal.forgetPilot(p.id)
	c.fleet.pilotDropped(p)
	c.event(taskqueue.Event{Kind: taskqueue.PilotGone, Pilot: p.id, Launch: p.info.Launch, Reason: reason})
}

// farewell answers a pilot that says that it ends, and forgets it.
func (c *Core) farewell(p *pilot) {
	c.reply(p, taskqueue.Answer{Number: c.fleet.nextAnswer(), Seen: p.talk.seq, Leave: true})
	p.talk.heldSeq = 0
	if p.unneeded {
		c.dropPilot(p, "has left: "+noWork)
		return
	}
	c.dropPilot(p, "has left")
}

func (c *Core) pilotEnded(in taskqueue.PilotEnded) {
	l := c.fleet.monitor.launches[in.Launch]
	if l == nil {
		return
	}
	p := l.pilot
	if p == nil && !l.expected && l.site.known && c.fleet.stop == running {
		c.fleet.judgeSite(l.site, false)
	}
	all := l.others
	if p != nil {
		all = append(all, p)
	}
	c.fleet.forgetLaunch(l.name)
	c.endAwaitingLaunch(l.name)
	reason := in.Reason
	if reason == "" {
		reason = "has ended"
	}
	for _, p := range all {
		c.dropPilot(p, reason)
	}
}

func (c *Core) beginStop(drain bool) {
	if drain && c.fleet.stop == running {
		c.fleet.stop = draining
	} else if !drain {
		c.fleet.stop = stopped
	}
	for _, p := range c.fleet.inOrder() {
		if p.record.refused {
			c.giveUp(p, "was refused, and the run ends")
			continue
		}
		if at := c.fleet.silentAt(p); p.lease.silent != 0 || at != 0 && at <= c.now {
			c.giveUp(p, "is silent, and the run ends")
			continue
		}
		p.toldToLeave = false
		c.placement.takeBackQueued(p, nil)
		c.fleet.mustAnswer(p)
		c.fleet.recount(p)
		c.fleet.armPilot(p)
	}
	for _, name := range sortedKeys(c.fleet.monitor.launches) {
		if l := c.fleet.monitor.launches[name]; l.pilot == nil && !l.expected {
			c.effects.Stop = append(c.effects.Stop, name)
		}
	}
}

// startGrace begins with the first transition.
func (c *Core) startGrace() {
	c.fleet.grace.begun = true
	if len(c.fleet.grace.awaited) == 0 {
		c.endGrace()
		return
	}
	c.timers.add(timer{at: c.now.After(c.config.ReconnectGrace), kind: graceTimer})
}

// endAwaiting is for pilots of which it is known what they run: they have told, or have ended meanwhile.
func (c *Core) endAwaiting(ids ...taskqueue.PilotID) {
	for _, id := range ids {
		delete(c.fleet.grace.awaited, id)
	}
	if len(c.fleet.grace.awaited) == 0 {
		c.endGrace()
	}
}

// endAwaitingLaunch is for pilots that are known to have ended meanwhile.
func (c *Core) endAwaitingLaunch(launch string) {
	if c.fleet.grace.over {
		return
	}
	ids := c.fleet.grace.byName[launch]
	for _, id := range ids {
		if _, ok := c.fleet.grace.awaited[id]; ok {
			c.journal.forgetPilot(id)
		}
	}
	c.endAwaiting(ids...)
}

// endGrace lets the pilots that have synced take jobs. Those that have not
// are no longer known.
func (c *Core) endGrace() {
	if c.fleet.grace.over {
		return
	}
	c.fleet.grace.over = true
	c.loseGangs()
	for _, id := range sortedKeys(c.fleet.grace.awaited) {
		launch := c.fleet.grace.awaited[id]
		c.journal.forgetPilot(id)
		if l := c.fleet.monitor.launches[launchName(id, launch)]; l != nil && l.pilot == nil {
			c.fleet.forgetLaunch(l.name) // else another pilot of it has returned
		}
		c.event(taskqueue.Event{Kind: taskqueue.PilotGone, Pilot: id, Launch: launch,
			Reason: "did not return after a restart"})
	}
	for _, p := range c.fleet.inOrder() {
		c.fleet.recount(p)
		c.fleet.wantsJobs(p)
	}
	c.regenerateAll()
}
