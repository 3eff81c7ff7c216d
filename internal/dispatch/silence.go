package dispatch

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// A pilot is silent when no Sync of it is held, and the next one has not come for
// Config.Silence after it was due. It may have died, or stand still, or its line may be
// cut. Until it is heard again it gets no jobs, and what it has not started others get.
// What it has started stays with it while its lease lasts: it may go on without the
// TaskQueue.

// silentAt is when the pilot falls silent, unless it is heard before; 0: a Sync is held.
func (fl *fleet) silentAt(p *pilot) instant {
	if p.talk.heldSeq != 0 || p.lease.silent != 0 {
		return 0
	}
	return p.lease.due.After(fl.silence())
}

// silence is how long a pilot may keep to itself what it is to say. When all is to end at once there
// is nothing that it could say and that is worth to wait for.
func (fl *fleet) silence() time.Duration {
	if fl.stop == stopped {
		return min(fl.config.EndSilence, fl.config.Silence)
	}
	return fl.config.Silence
}

// fallsSilent is for a pilot whose Sync has not come. At the end of the TaskQueue nobody
// waits for it any more.
func (c *Core) fallsSilent(p *pilot) {
	p.lease.silent = p.lease.due
	c.acceptanceChanged(p)
	c.event(taskqueue.Event{Kind: taskqueue.PilotSilent, Pilot: p.id, Launch: p.info.Launch, Site: p.info.Site,
		Host: p.info.Host})
	if c.fleet.stop != running {
		c.giveUp(p, "is silent, and the run ends")
		return
	}
	if p.seat.reserved != nil {
		c.placement.release(p)
	}
	c.forfeitAll(p)
	c.placement.expectNothing(p)
	c.placement.noLongerAwaited(p)
	c.fleet.recount(p)
}

// endSilence is for a pilot of which a Sync has come.
func (c *Core) endSilence(p *pilot) {
	if p.lease.silent == 0 {
		return
	}
	p.lease.silent = 0
	c.acceptanceChanged(p)
	p.seat.askedInVain = 0
	c.event(taskqueue.Event{Kind: taskqueue.PilotHeard, Pilot: p.id, Launch: p.info.Launch, Site: p.info.Site,
		Host: p.info.Host})
}

// hangUp is for a Sync whose connection broke: the pilot is to call again at once.
func (c *Core) hangUp(in taskqueue.HangUp) {
	p := c.fleet.pilots[in.Pilot]
	if p == nil || p.talk.heldSeq == 0 || p.talk.heldSeq != in.Seq {
		return
	}
	p.talk.heldSeq, p.lease.due = 0, c.now
	p.lease.silentAfter = c.now.After(c.config.Hold + c.fleet.lease(p))
	c.fleet.recount(p)
	c.fleet.armPilot(p)
}

// giveUp forgets a pilot that is not heard any more. One that stands still cannot end by
// itself, and keeps the locks of its host and its place in the batch system.
func (c *Core) giveUp(p *pilot, reason string) {
	if l := p.launch; l != nil && l.pilot == p && len(l.others) == 0 && p.info.Launch != "" {
		c.effects.Stop = append(c.effects.Stop, p.info.Launch)
	}
	c.dropPilot(p, reason)
}

// refuse is for a pilot of which something was refused. It leaves when it hears of that, and says why in its log: so
// its launch is stopped only if it stays.
func (c *Core) refuse(p *pilot) {
	if p.record.refused {
		return
	}
	p.record.refused = true
	c.acceptanceChanged(p)
	if p.talk.heldSeq != 0 {
		c.reply(p, taskqueue.Answer{LeaveNow: true})
		p.talk.heldSeq = 0
	}
	if p.seat.reserved != nil {
		c.placement.release(p)
	}
	for _, a := range slices.Clone(p.attempts) {
		c.attemptLost(a, fmt.Sprintf("pilot %s was refused", p.id))
	}
	c.placement.expectNothing(p)
	c.placement.noLongerAwaited(p)
	p.lease.due, p.lease.silentAfter = c.now, c.now.After(c.config.Silence)
	c.fleet.recount(p)
	c.fleet.armPilot(p)
}

// pilotTimerFired answers a Sync that was held long enough, looks at what waits at the
// pilot, and notices that it is silent, and then that it is so for too long. If the timer
// is late the TaskQueue itself stood still, and the pilot may have called meanwhile.
func (c *Core) pilotTimerFired(p *pilot) {
	if p.left || p.lease.armed > c.now {
		return
	}
	late := p.talk.heldSeq == 0 && p.lease.silent == 0 && c.now >= p.lease.armed.After(c.config.Silence/2)
	p.lease.armed = 0
	if p.talk.heldSeq != 0 && p.talk.heldSince.After(c.config.Hold) <= c.now {
		c.fleet.mustAnswer(p) // answering arms the timer
		return
	}
	if p.talk.heldSeq == 0 && p.lease.silentAfter <= c.now {
		reason := fmt.Sprintf("has not called for %v", c.fleet.lease(p))
		if p.record.refused {
			reason = "was refused, and has not left"
		}
		c.giveUp(p, reason)
		return
	}
	if late {
		p.lease.due = max(p.lease.due, c.now)
	}
	if at := c.fleet.silentAt(p); at != 0 && at <= c.now {
		c.fallsSilent(p)
	}
	if p.checkAt != 0 && p.checkAt <= c.now {
		c.checkQueue(p)
	}
	if !p.left {
		c.fleet.armPilot(p)
	}
}
