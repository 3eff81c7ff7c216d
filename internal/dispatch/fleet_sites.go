package dispatch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"fairway/internal/dispatch/pilotplan"
	"fairway/internal/dispatch/records"
	"fairway/internal/dispatch/room"
	"fairway/internal/taskqueue"
)

// monitor is the PilotMonitor of paper 3, section IV-A: it keeps count of the
// pilots of each site, and asks for more. A submitted pilot is inactive until
// it registers, then idle or busy. Launches are durable, sites are not.
type monitor struct {
	sites    []*site // that were described, in the order of the first SetSite
	byName   map[string]*site
	launches map[string]*launch
	changed  bool // the algorithm may come to another result than when it ran last
	lastRun  instant
	armed    instant
}

// site is a batch system with what it has of pilots. It lives as long as the
// Core. site.pilots and unconfirmed are all that count as submitted.
type site struct {
	taskqueue.Site
	known       bool // described by a SetSite; else only named by a launch
	tools       map[string]bool
	without     map[string]bool // programs that its pilots have not found
	pilots      [standings]int  // its launches, by what they count as
	unconfirmed []instant       // pilots that the batch system has not confirmed yet, oldest first
	failures    int             // pilots in a row that could not work
	notBefore   instant
	outlook     outlook
	idleDue     instant    // before this no pilot has been idle for IdleTime
	gathering   *gathering // the gang for which room is kept at its pilots; nil: none
}

// launch is a submitted pilot, from when the batch system took it, or the pilot
// registered, until either has ended. Its site counts it under standing.
type launch struct {
	name     string
	site     *site
	pilot    *pilot   // nil while inactive
	others   []*pilot // that came before it: the batch system has started it several times
	standing standing
	since    instant // it has stood so, of a pilot that is registered
	expected bool    // registered before a restart

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

func (m *monitor) arm(s *transition, at instant) {
	if at != 0 && (m.armed == 0 || at < m.armed) {
		m.armed = at
		s.timers.add(timer{at: at, kind: monitorTimer})
	}
}

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
		s = &site{Site: taskqueue.Site{Name: name}}
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

func (fl *fleet) setSite(s taskqueue.Site) error {
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
	at.Site, at.idleDue = s, 0
	at.tools, at.without = make(map[string]bool), make(map[string]bool)
	for _, t := range s.Tools {
		at.tools[t] = true
	}
	m.changed = true
	return nil
}

func (fl *fleet) pilotSubmitted(in taskqueue.PilotSubmitted) error {
	if in.Launch == "" {
		return refuse("dispatch: a submitted pilot without a launch name")
	}
	m := &fl.monitor
	if s := m.site(in.Site); s != nil && len(s.unconfirmed) > 0 {
		s.unconfirmed = s.unconfirmed[1:]
		m.changed = true
	}
	if m.launches[in.Launch] == nil {
		m.launched(in.Launch, in.Site).submitted = fl.now
		fl.nodes.comes = fl.now.After(pilotComes)
		fl.journal.persist(records.TableLaunch, 0, in.Launch, &records.Launch{Site: in.Site})
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

// launchName gives pilots that no batch system started a name as well.
func launchName(id taskqueue.PilotID, launch string) string {
	if launch == "" {
		return "pilot " + string(id)
	}
	return launch
}

// pilotRegistered counts a pilot that has come.
func (fl *fleet) pilotRegistered(p *pilot) {
	m := &fl.monitor
	p.launch = m.launched(launchName(p.id, p.info.Launch), p.info.Site)
	if before := p.launch.pilot; before != nil {
		p.launch.others = append(p.launch.others, before)
	}
	p.launch.pilot = p
	p.launch.site.countWait(fl.now, p.launch)
	fl.recount(p)
	if s := m.site(p.info.Site); s != nil {
		fl.judgeSite(s, p.info.Error == "")
	}
}

// judgeSite slows a site down whose pilots cannot work.
func (fl *fleet) judgeSite(s *site, works bool) {
	fl.monitor.changed = true
	if works {
		s.failures, s.notBefore = 0, 0
		return
	}
	s.notBefore = fl.now.After(doubled(firstStartBackoff, s.failures, fl.config.MaxStartBackoff))
	s.failures++
}

// pilotDropped stops counting a pilot that has gone, unless its launch has another.
func (fl *fleet) pilotDropped(p *pilot) {
	l := p.launch
	last := len(l.others) - 1
	switch {
	case l.pilot != p:
		l.others = slices.DeleteFunc(l.others, func(other *pilot) bool { return other == p })
	case last >= 0:
		l.pilot, l.others = l.others[last], l.others[:last]
		fl.recount(l.pilot)
	default:
		fl.forgetLaunch(l.name)
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
	l.pilot, l.others = nil, nil
	m.changed = true
	fl.journal.forget(records.TableLaunch, 0, name)
}

func (s *site) submitted() int {
	n := len(s.unconfirmed)
	for _, launches := range s.pilots {
		n += launches
	}
	return n
}

func (s *site) inactive() int { return len(s.unconfirmed) + s.pilots[inactive] }

// monitorPeriod is the least time between two runs of the algorithm with jobs
// that are ready.
const monitorPeriod = 100 * time.Millisecond

// firstStartBackoff is the pause after the first pilot of a site that could
// not work.
const firstStartBackoff = 10 * time.Second

// planPilots runs the algorithm for every site, if something has changed.
func (fl *fleet) planPilots() {
	m := &fl.monitor
	if !m.changed && !fl.jobs.changed || len(m.sites) == 0 || fl.stop != running || !fl.grace.over {
		return
	}
	if m.lastRun != 0 && fl.now < m.lastRun.After(monitorPeriod) {
		m.arm(fl.transition, m.lastRun.After(monitorPeriod))
		return
	}
	m.changed, fl.jobs.changed = false, false
	if fl.jobs.ready > 0 {
		m.lastRun = fl.now // with nothing ready it costs nothing, and the first jobs need not wait
	}
	if fl.choosesSites() {
		fl.allot()
	}
	for _, s := range m.sites {
		fl.startPilots(s)
		fl.endIdle(s)
	}
}

// startPilots asks for the pilots that the site should have more of, and to be
// woken when time alone changes how many.
func (fl *fleet) startPilots(s *site) {
	fl.expireStarts(s)
	if fl.now < s.notBefore {
		fl.monitor.arm(fl.transition, s.notBefore)
	} else if n := fl.plan(s); n > 0 {
		for range n {
			s.unconfirmed = append(s.unconfirmed, fl.now)
		}
		fl.effects.Start = append(fl.effects.Start, taskqueue.Start{Site: s.Name, Count: n})
	}
	if len(s.unconfirmed) > 0 {
		fl.monitor.arm(fl.transition, s.unconfirmed[0].After(fl.config.StartTimeout))
	}
}

// noWork is why a pilot leaves that was idle for too long.
const noWork = "no work came"

// endIdle has pilots leave that were idle for the site's IdleTime, those first that were so for longest. MinPilots
// and MinIdlePilots stay; those that have yet to register count for neither.
func (fl *fleet) endIdle(s *site) {
	if s.IdleTime <= 0 || fl.now < s.idleDue || s.pilots[idle] <= s.MinIdlePilots {
		fl.awaitIdle(s)
		return
	}
	var waits []*launch
	stay := 0
	for _, l := range fl.monitor.launches {
		if l.site != s || l.pilot == nil || l.pilot.unneeded {
			continue
		}
		stay++
		if l.standing == idle && l.pilot.info.Launch != "" { // else whoever has started it ends it
			waits = append(waits, l)
		}
	}
	slices.SortFunc(waits, func(a, b *launch) int {
		return cmp.Or(cmp.Compare(a.since, b.since), strings.Compare(a.name, b.name))
	})
	s.idleDue = fl.now.After(s.IdleTime)
	for _, l := range waits {
		at := l.since.After(s.IdleTime)
		if at > fl.now {
			s.idleDue = at
			break
		}
		if s.pilots[idle] <= s.MinIdlePilots || stay <= s.MinPilots {
			s.idleDue = fl.now // whoever is idle besides has it leave
			return
		}
		stay--
		l.pilot.unneeded, l.pilot.toldToLeave = true, false
		fl.mustAnswer(l.pilot)
		fl.recount(l.pilot)
	}
	fl.awaitIdle(s)
}

// awaitIdle has the site looked at when a pilot of it may have been idle for long enough.
func (fl *fleet) awaitIdle(s *site) {
	if s.IdleTime > 0 && s.pilots[idle] > s.MinIdlePilots && s.idleDue > fl.now {
		fl.monitor.arm(fl.transition, s.idleDue)
	}
}

// expireStarts forgets pilots asked for that were not confirmed in time.
func (fl *fleet) expireStarts(s *site) {
	for len(s.unconfirmed) > 0 && s.unconfirmed[0].After(fl.config.StartTimeout) <= fl.now {
		s.unconfirmed = s.unconfirmed[1:]
	}
}

// plan returns how many pilots to submit to the site now.
func (fl *fleet) plan(s *site) int {
	has := pilotplan.Site{
		Min: s.MinPilots, Max: s.MaxPilots, MinIdle: s.MinIdlePilots,
		Submitted: s.submitted(), Inactive: s.inactive(), Idle: s.pilots[idle],
	}
	return has.ToSend(func(yield func(int) bool) { fl.pilotsNeeded(s, yield) })
}

// pilotsNeeded yields, for each group of ready jobs that the site's pilots
// could run, how many pilots would run all of it at once. Where sites are
// weighed it is what the plan of all sites allots to this one.
func (fl *fleet) pilotsNeeded(s *site, yield func(int) bool) {
	if fl.choosesSites() {
		yield(s.outlook.rooms.Wanted())
		return
	}
	for g, n := range fl.jobs.startable {
		if !fl.serves(s, g.class) {
			continue
		}
		per := s.jobsPerPilot(g.class)
		if !yield((n*g.class.tasks() + per - 1) / per) {
			return
		}
	}
}

func (s *site) jobsPerPilot(cl *class) int {
	if cl.key.apart {
		return 1
	}
	one := room.Room{Has: &s.Pilot}
	return max(1, one.Free(&cl.takes))
}
