package dispatch

import (
	"slices"
	"time"
)

// monitor is the PilotMonitor of paper 3, section IV-A: it keeps count of the
// pilots of each site, and asks for more. A submitted pilot is inactive until
// it registers, then idle or busy.
type monitor struct {
	sites    []*site // in the order in which they became known
	launches map[string]*launch
	lastRun  instant
	armed    instant
}

type site struct {
	Site
	tools     map[string]bool
	asked     []instant // pilots that the batch system has not confirmed yet
	failures  int       // pilots in a row that could not work
	notBefore instant
}

// launch is a submitted pilot.
type launch struct {
	name  string
	site  string
	pilot *pilot // nil while inactive
	known bool   // registered before a restart
}

// monitorPeriod is the least time between two runs of the algorithm.
const monitorPeriod = 100 * time.Millisecond

// firstStartBackoff is the pause after the first pilot of a site that could
// not work.
const firstStartBackoff = 10 * time.Second

func newMonitor() monitor { return monitor{launches: make(map[string]*launch)} }

func (m *monitor) site(name string) *site {
	for _, s := range m.sites {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func (m *monitor) mostMemory() int64 {
	var most int64
	for _, s := range m.sites {
		most = max(most, s.Pilot.Memory)
	}
	return most
}

func (c *Core) setSite(s Site) error {
	if s.Name == "" {
		return refuse("dispatch: a site without a name")
	}
	if s.MinPilots < 0 || s.MaxPilots < s.MinPilots || s.MinIdlePilots < 0 {
		return refuse("dispatch: site %s: 0 <= min_pilots <= max_pilots and 0 <= min_idle_pilots must hold", s.Name)
	}
	known := c.monitor.site(s.Name)
	if known == nil {
		known = &site{}
		c.monitor.sites = append(c.monitor.sites, known)
	}
	known.Site = s
	known.tools = make(map[string]bool)
	for _, t := range s.Tools {
		known.tools[t] = true
	}
	return nil
}

func (c *Core) pilotSubmitted(in PilotSubmitted) error {
	if in.Launch == "" {
		return refuse("dispatch: a submitted pilot without a launch name")
	}
	if s := c.monitor.site(in.Site); s != nil && len(s.asked) > 0 {
		s.asked = slices.Delete(s.asked, 0, 1)
	}
	if c.monitor.launches[in.Launch] == nil {
		c.monitor.launched(in.Launch, in.Site)
		c.persist(TableLaunch, in.Launch, launchBody{bodyVersion, in.Site})
	}
	return nil
}

func (m *monitor) launched(name, site string) *launch {
	l := &launch{name: name, site: site}
	m.launches[name] = l
	return l
}

// recall counts a pilot that had registered before a restart.
func (m *monitor) recall(id PilotID, b *pilotBody) {
	m.launched(launchName(id, b.Launch), b.Site).known = true
}

// launchName gives pilots that no batch system started a name as well.
func launchName(id PilotID, launch string) string {
	if launch == "" {
		return "pilot " + string(id)
	}
	return launch
}

func (m *monitor) registered(c *Core, p *pilot) {
	name := launchName(p.id, p.info.Launch)
	l := m.launches[name]
	if l == nil {
		l = m.launched(name, p.info.Site)
	}
	l.pilot = p
	if s := m.site(p.info.Site); s != nil {
		s.judge(c, p.info.Error == "")
	}
}

// judge slows a site down whose pilots cannot work.
func (s *site) judge(c *Core, works bool) {
	if works {
		s.failures, s.notBefore = 0, 0
		return
	}
	pause := firstStartBackoff
	for n := 0; n < s.failures && pause < c.config.MaxStartBackoff; n++ {
		pause *= 2
	}
	s.failures++
	s.notBefore = c.now.after(min(pause, c.config.MaxStartBackoff))
	c.monitor.arm(c, s.notBefore)
}

func (c *Core) pilotEnded(in PilotEnded) {
	l := c.monitor.launches[in.Launch]
	if l == nil {
		return
	}
	p := l.pilot
	if p == nil && !l.known {
		if s := c.monitor.site(l.site); s != nil && c.stop == running {
			s.judge(c, false)
		}
	}
	c.forgetLaunch(l)
	c.endAwaitingLaunch(l.name)
	if p != nil {
		reason := in.Reason
		if reason == "" {
			reason = "has ended"
		}
		c.dropPilot(p, reason)
	}
}

// monitorForgets stops counting a pilot that is lost: what its batch system
// still has of it does no work.
func (c *Core) monitorForgets(id PilotID, name string) {
	if l := c.monitor.launches[launchName(id, name)]; l != nil {
		c.forgetLaunch(l)
	}
}

func (c *Core) forgetLaunch(l *launch) {
	delete(c.monitor.launches, l.name)
	c.forget(TableLaunch, l.name)
}

func (m *monitor) arm(c *Core, at instant) {
	if m.armed == 0 || at < m.armed {
		m.armed = at
		c.timers.add(timer{at: at, kind: monitorTimer})
	}
}

// planPilots runs the algorithm for every site.
func (c *Core) planPilots() {
	m := &c.monitor
	if len(m.sites) == 0 || c.stop != running || !c.grace.over {
		return
	}
	if m.lastRun != 0 && c.now < m.lastRun.after(monitorPeriod) {
		m.arm(c, m.lastRun.after(monitorPeriod))
		return
	}
	m.lastRun = c.now
	for _, s := range m.sites {
		if n := c.plan(s); n > 0 {
			for range n {
				s.asked = append(s.asked, c.now)
			}
			m.arm(c, c.now.after(c.config.StartTimeout))
			c.effects.Start = append(c.effects.Start, Start{Site: s.Name, Count: n})
		}
	}
}

// plan returns how many pilots to submit to the site now. The numbers are the
// steps of section IV-A.
func (c *Core) plan(s *site) int {
	if c.now < s.notBefore {
		return 0
	}
	s.asked = slices.DeleteFunc(s.asked, func(at instant) bool { return at.after(c.config.StartTimeout) <= c.now })
	count := c.countPilots(s)              // 1
	slots := s.MaxPilots - count.submitted // 2
	if slots <= 0 {                        // 3, 4
		return 0
	}
	send, inactive := 0, count.inactive
	for _, needed := range c.pilotsNeeded(s) { // 5, 6
		if needed <= inactive { // 7, 8
			inactive -= needed
			continue
		}
		// 9, 10: where a group has more tasks than there are slots, the paper
		// sends nothing. Here it sends min(slots, uncovered), or the site
		// would stand still just when there is most to do.
		uncovered := needed - inactive
		inactive = 0
		send += min(slots-send, uncovered)
	}
	if short := s.MinIdlePilots - count.idle - inactive; short > 0 { // 11, 12
		send += min(slots-send, short)
	}
	if short := s.MinPilots - count.submitted - send; short > 0 { // 13, 14
		send += min(slots-send, short)
	}
	return send
}

type pilotCount struct{ submitted, inactive, idle int }

func (c *Core) countPilots(s *site) pilotCount {
	n := pilotCount{submitted: len(s.asked), inactive: len(s.asked)}
	for _, l := range c.monitor.launches {
		if l.site != s.Name {
			continue
		}
		n.submitted++
		switch {
		case l.pilot == nil:
			n.inactive++
		case len(l.pilot.attempts) == 0 && c.takes(l.pilot):
			n.idle++
		}
	}
	return n
}

// pilotsNeeded returns, for each group of ready jobs that the site's pilots
// could run, how many pilots would run all of it at once.
func (c *Core) pilotsNeeded(s *site) []int {
	var needed []int
	for _, l := range c.levels {
		for _, g := range l.groups {
			k := &g.class.key
			if k.site != "" && k.site != s.Name && k.wait > 0 && c.monitor.site(k.site) != nil {
				continue // its own site's
			}
			if len(lacks(g.class, s.Pilot, s.tools)) > 0 {
				continue
			}
			per := s.jobsPerPilot(g.class)
			needed = append(needed, (g.ready+per-1)/per)
		}
	}
	return needed
}

func (s *site) jobsPerPilot(cl *class) int {
	p := pilot{info: PilotInfo{Has: s.Pilot}}
	n := p.totalCPUs() / p.cpusOf(cl)
	if m := cl.key.memory; m > 0 {
		n = min(n, s.Pilot.Memory/m)
	}
	if d := cl.key.disk; d > 0 {
		n = min(n, s.Pilot.Disk/d)
	}
	for _, x := range cl.countable {
		if x.n > 0 {
			n = min(n, s.Pilot.Countable[x.name]/x.n)
		}
	}
	return int(max(n, 1))
}

// lacks says what a pilot with these resources and tools is missing for a
// class, whatever else it runs.
func lacks(cl *class, has Resources, tools map[string]bool) []string {
	var list []string
	p := pilot{info: PilotInfo{Has: has}}
	if p.cpusOf(cl) > p.totalCPUs() {
		list = append(list, "cpus")
	}
	if cl.key.memory > has.Memory {
		list = append(list, "memory")
	}
	if cl.key.disk > has.Disk {
		list = append(list, "disk")
	}
	if has.Time != 0 && cl.key.time > has.Time {
		list = append(list, "time")
	}
	for _, n := range cl.countable {
		if n.n > has.Countable[n.name] {
			list = append(list, n.name)
		}
	}
	for _, t := range cl.tools {
		if !tools[t] {
			list = append(list, t)
		}
	}
	return list
}
