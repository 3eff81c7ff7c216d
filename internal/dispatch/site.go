package dispatch

// site is a batch system with what it has of pilots.
type site struct {
	Site
	known     bool // described by a SetSite; else only named by a launch
	tools     map[string]bool
	pilots    [standings]int // its launches, by what they count as
	asked     []instant      // pilots that the batch system has not confirmed yet, oldest first
	failures  int            // pilots in a row that could not work
	notBefore instant
	outlook   outlook
}

// launch is a submitted pilot.
type launch struct {
	name     string
	site     *site
	pilot    *pilot // nil while inactive
	standing standing
	recalled bool // registered before a restart

	submitted instant // 0: unknown
}

// standing is what a submitted pilot counts as in the algorithm.
type standing uint8

const (
	inactive standing = iota // has not registered
	idle
	busy // or takes no jobs
	standings
)

// site returns a site that a SetSite has described, or nil.
func (m *monitor) site(name string) *site {
	if s := m.byName[name]; s != nil && s.known {
		return s
	}
	return nil
}

func (m *monitor) siteNamed(name string) *site {
	s := m.byName[name]
	if s == nil {
		s = &site{Site: Site{Name: name}}
		m.byName[name] = s
	}
	return s
}

func (m *monitor) mostMemory() int64 {
	var most int64
	for _, s := range m.sites {
		most = max(most, s.Pilot.Memory)
	}
	return most
}

func (fl *fleet) setSite(s Site) error {
	if s.Name == "" {
		return refuse("dispatch: a site without a name")
	}
	if s.Price < 0 || s.QueueWait < 0 {
		return refuse("dispatch: site %s: neither a price nor a wait can be negative", s.Name)
	}
	if s.MinPilots < 0 || s.MaxPilots < s.MinPilots || s.MinIdlePilots < 0 {
		return refuse("dispatch: site %s: 0 <= min_pilots <= max_pilots and 0 <= min_idle_pilots must hold", s.Name)
	}
	m := &fl.monitor
	at := m.siteNamed(s.Name)
	if !at.known {
		at.known = true
		m.sites = append(m.sites, at)
	}
	at.Site = s
	at.tools = make(map[string]bool)
	for _, t := range s.Tools {
		at.tools[t] = true
	}
	m.changed = true
	return nil
}

func (fl *fleet) pilotSubmitted(in PilotSubmitted) error {
	if in.Launch == "" {
		return refuse("dispatch: a submitted pilot without a launch name")
	}
	m := &fl.monitor
	if s := m.site(in.Site); s != nil && len(s.asked) > 0 {
		s.asked = s.asked[1:]
		m.changed = true
	}
	if m.launches[in.Launch] == nil {
		m.launched(in.Launch, in.Site).submitted = fl.now
		fl.journal.persist(TableLaunch, in.Launch, launchBody{bodyVersion, in.Site})
	}
	return nil
}

// launched returns the launch of that name, which is new or was known before.
func (m *monitor) launched(name, site string) *launch {
	l := m.launches[name]
	if l == nil {
		l = &launch{name: name, site: m.siteNamed(site)}
		m.launches[name] = l
		l.site.pilots[inactive]++
		m.changed = true
	}
	return l
}

// recall counts a pilot that had registered before a restart.
func (m *monitor) recall(id PilotID, b *pilotBody) {
	m.launched(launchName(id, b.Launch), b.Site).recalled = true
}

// launchName gives pilots that no batch system started a name as well.
func launchName(id PilotID, launch string) string {
	if launch == "" {
		return "pilot " + string(id)
	}
	return launch
}

// pilotRegistered counts a pilot that has come.
func (fl *fleet) pilotRegistered(p *pilot) {
	m := &fl.monitor
	p.launch = m.launched(launchName(p.id, p.info.Launch), p.info.Site)
	p.launch.pilot = p
	p.launch.site.waited(fl.now, p.launch)
	m.count(p)
	if s := m.site(p.info.Site); s != nil {
		fl.judge(s, p.info.Error == "")
	}
}

// count is called when what a registered pilot counts as may have changed.
func (m *monitor) count(p *pilot) {
	l := p.launch
	if l == nil || l.pilot != p {
		return // another pilot has taken its place
	}
	is := busy
	if p.willing() && len(p.attempts) == 0 {
		is = idle
	}
	if is != l.standing {
		l.site.pilots[l.standing]--
		l.site.pilots[is]++
		l.standing = is
		m.changed = true
	}
}

// judge slows a site down whose pilots cannot work.
func (fl *fleet) judge(s *site, works bool) {
	fl.monitor.changed = true
	if works {
		s.failures, s.notBefore = 0, 0
		return
	}
	pause := firstStartBackoff
	for n := 0; n < s.failures && pause < fl.config.MaxStartBackoff; n++ {
		pause *= 2
	}
	s.failures++
	s.notBefore = fl.now.after(min(pause, fl.config.MaxStartBackoff))
}

func (c *Core) pilotEnded(in PilotEnded) {
	l := c.fleet.monitor.launches[in.Launch]
	if l == nil {
		return
	}
	p := l.pilot
	if p == nil && !l.recalled && l.site.known && c.fleet.stop == running {
		c.fleet.judge(l.site, false)
	}
	c.fleet.forgetLaunch(l.name)
	c.endAwaitingLaunch(l.name)
	if p != nil {
		reason := in.Reason
		if reason == "" {
			reason = "has ended"
		}
		c.dropPilot(p, reason)
	}
}

// forgetLaunch stops counting a pilot. If it is lost, what its batch system
// still has of it does no work.
func (fl *fleet) forgetLaunch(name string) {
	m := &fl.monitor
	l := m.launches[name]
	if l == nil {
		return
	}
	delete(m.launches, name)
	l.site.pilots[l.standing]--
	l.pilot = nil
	m.changed = true
	fl.journal.forget(TableLaunch, name)
}

// expireStarts forgets pilots asked for that were not confirmed in time.
func (fl *fleet) expireStarts(s *site) {
	for len(s.asked) > 0 && s.asked[0].after(fl.config.StartTimeout) <= fl.now {
		s.asked = s.asked[1:]
	}
}

func (s *site) submitted() int {
	n := len(s.asked)
	for _, launches := range s.pilots {
		n += launches
	}
	return n
}

func (s *site) inactive() int { return len(s.asked) + s.pilots[inactive] }
