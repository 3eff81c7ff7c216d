package dispatch

import (
	"fmt"
	"slices"
)

// register makes a pilot known that sends its whole state.
func (fl *fleet) register(s *Sync) *pilot {
	p := &pilot{id: s.Pilot, cached: make(map[*version]holding), other: make(map[FileRef]int64)}
	fl.pilots[p.id] = p
	fl.describe(p, *s.Hello)
	fl.journal.persistPilot(p)
	fl.pilotRegistered(p)
	fl.event(Event{Kind: PilotRegistered, Pilot: p.id, Host: p.info.Host, Reason: p.info.Error})
	return p
}

// describe takes what the pilot says of itself.
func (fl *fleet) describe(p *pilot, info PilotInfo) {
	if p.host != nil {
		fl.unplace(p)
	}
	p.info = info
	p.shape = fl.shapeFor(&p.info)
	h := fl.hosts[info.Host]
	if h == nil {
		h = &host{name: info.Host}
		fl.hosts[info.Host] = h
	}
	p.host = h
	h.pilots = append(h.pilots, p)
	if info.CacheDir != "" {
		h.shares++
	}
	p.shape.pilots++
	p.shape.hosts[info.Host]++
	fl.slots += p.shape.slots()
	p.asked = 0
	fl.peersChanged(p)
}

func (fl *fleet) unplace(p *pilot) {
	h := p.host
	h.pilots = slices.DeleteFunc(h.pilots, func(o *pilot) bool { return o == p })
	if p.info.CacheDir != "" {
		h.shares--
	}
	if len(h.pilots) == 0 {
		delete(fl.hosts, h.name)
	}
	p.shape.pilots--
	fl.slots -= p.shape.slots()
	if p.shape.hosts[h.name]--; p.shape.hosts[h.name] == 0 {
		delete(p.shape.hosts, h.name)
	}
}

// peersChanged tells the other pilots of the host, as its cache counts for
// theirs (section IV-D).
func (fl *fleet) peersChanged(p *pilot) {
	if p.info.CacheDir == "" {
		return
	}
	for _, o := range p.host.pilots {
		if o != p {
			fl.tell(o)
		}
	}
}

// dropPilot forgets a pilot with its cache; what it ran is lost.
func (c *Core) dropPilot(p *pilot, reason string) {
	if p.left {
		return
	}
	p.left = true
	delete(c.fleet.pilots, p.id)
	if p.held != 0 {
		c.reply(p, Answer{NeedFull: true})
		p.held = 0
	}
	c.fleet.unplace(p)
	c.fleet.peersChanged(p)
	c.fleet.updateParked(p)
	c.placement.noLongerAwaited(p)
	if p.reserved != nil {
		delete(c.placement.reserved, p.reserved)
		p.reserved = nil
	}
	c.clearCache(p)
	if at := p.place(); !c.fleet.stands(at) {
		c.placement.unbind(at)
	}
	for _, a := range slices.Clone(p.attempts) {
		c.attemptLost(a, fmt.Sprintf("pilot %s %s", p.id, reason))
	}
	c.endAwaiting(p)
	c.journal.forgetPilot(p.id)
	if p.launch.pilot == p {
		c.fleet.forgetLaunch(p.launch.name)
	}
	c.event(Event{Kind: PilotGone, Pilot: p.id, Reason: reason})
}

// leavePilot lets a pilot go that says that it ends.
func (c *Core) leavePilot(p *pilot) {
	c.reply(p, Answer{Number: c.fleet.nextAnswer(), Seen: p.seq, Leave: true})
	p.held = 0
	c.dropPilot(p, "has left")
}

func (fl *fleet) armPilot(p *pilot) {
	at := p.silentAfter
	if p.held != 0 {
		at = min(at, p.heldAt.after(fl.config.Hold))
	}
	if p.armed == 0 || at < p.armed {
		p.armed = at
		fl.timers.add(timer{at: at, kind: pilotTimer, pilot: p})
	}
}

// pilotTime answers a Sync that was held long enough, and gives up a pilot
// that was silent for too long.
func (c *Core) pilotTime(p *pilot) {
	if p.left || p.armed > c.now {
		return
	}
	p.armed = 0
	switch {
	case p.held != 0 && p.heldAt.after(c.config.Hold) <= c.now:
		c.fleet.tell(p) // answering arms the timer
	case p.held == 0 && p.silentAfter <= c.now:
		c.dropPilot(p, fmt.Sprintf("has not called for %v", c.config.PilotLease))
	default:
		c.fleet.armPilot(p)
	}
}

// stopping is how far an orderly end has got.
type stopping uint8

const (
	running stopping = iota
	draining
	stopped
)

func (c *Core) beginStop(drain bool) {
	if drain && c.fleet.stop == running {
		c.fleet.stop = draining
	} else if !drain {
		c.fleet.stop = stopped
	}
	for _, p := range c.fleet.inOrder() {
		p.toldToLeave = false
		c.placement.takeBackQueued(p)
		c.fleet.tell(p)
		c.fleet.updateParked(p)
	}
	for _, name := range sortedKeys(c.fleet.monitor.launches) {
		if l := c.fleet.monitor.launches[name]; l.pilot == nil && !l.recalled {
			c.effects.Stop = append(c.effects.Stop, name)
		}
	}
}

// grace is the time after Load in which known pilots may report what they run
// before anything is assigned.
type grace struct {
	begun   bool
	over    bool
	awaited map[PilotID]string   // their launches
	byName  map[string][]PilotID // those of each launch, as launchName calls it
}

// startGrace begins with the first step.
func (c *Core) startGrace() {
	if c.fleet.grace.begun {
		return
	}
	c.fleet.grace.begun = true
	if len(c.fleet.grace.awaited) == 0 {
		c.endGrace()
		return
	}
	c.timers.add(timer{at: c.now.after(c.config.ReconnectGrace), kind: graceTimer})
}

func (c *Core) endAwaiting(p *pilot) {
	if c.fleet.grace.over {
		return
	}
	delete(c.fleet.grace.awaited, p.id)
	if len(c.fleet.grace.awaited) == 0 {
		c.endGrace()
	}
}

// endAwaitingLaunch is for pilots that are known to have ended meanwhile.
func (c *Core) endAwaitingLaunch(launch string) {
	if c.fleet.grace.over {
		return
	}
	for _, id := range c.fleet.grace.byName[launch] {
		if _, still := c.fleet.grace.awaited[id]; still {
			delete(c.fleet.grace.awaited, id)
			c.journal.forgetPilot(id)
		}
	}
	if len(c.fleet.grace.awaited) == 0 {
		c.endGrace()
	}
}

// endGrace lets the pilots that have synced take jobs. Those that have not
// are no longer known.
func (c *Core) endGrace() {
	if c.fleet.grace.over {
		return
	}
	c.fleet.grace.over = true
	for _, id := range sortedKeys(c.fleet.grace.awaited) {
		c.journal.forgetPilot(id)
		c.fleet.forgetLaunch(launchName(id, c.fleet.grace.awaited[id]))
		c.event(Event{Kind: PilotGone, Pilot: id, Reason: "did not return after a restart"})
	}
	for _, p := range c.fleet.inOrder() {
		c.fleet.updateParked(p)
		c.fleet.ask(p)
	}
	c.regenerateAll()
}
