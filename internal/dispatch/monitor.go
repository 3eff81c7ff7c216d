package dispatch

import "time"

// monitor is the PilotMonitor of paper 3, section IV-A: it keeps count of the
// pilots of each site, and asks for more. A submitted pilot is inactive until
// it registers, then idle or busy.
type monitor struct {
	sites    []*site // that were described, in the order of the first SetSite
	byName   map[string]*site
	launches map[string]*launch
	changed  bool // the algorithm may come to another result than when it ran last
	lastRun  instant
	armed    instant
}

// monitorPeriod is the least time between two runs of the algorithm with jobs
// that are ready.
const monitorPeriod = 100 * time.Millisecond

// firstStartBackoff is the pause after the first pilot of a site that could
// not work.
const firstStartBackoff = 10 * time.Second

func newMonitor() monitor {
	return monitor{byName: make(map[string]*site), launches: make(map[string]*launch)}
}

func (m *monitor) arm(s *step, at instant) {
	if at != 0 && (m.armed == 0 || at < m.armed) {
		m.armed = at
		s.timers.add(timer{at: at, kind: monitorTimer})
	}
}

// planPilots runs the algorithm for every site, if something has changed.
func (fl *fleet) planPilots() {
	m := &fl.monitor
	if !m.changed && !fl.queue.changed || len(m.sites) == 0 || fl.stop != running || !fl.grace.over {
		return
	}
	if m.lastRun != 0 && fl.now < m.lastRun.after(monitorPeriod) {
		m.arm(fl.step, m.lastRun.after(monitorPeriod))
		return
	}
	m.changed, fl.queue.changed = false, false
	if fl.queue.ready > 0 {
		m.lastRun = fl.now // with nothing ready it costs nothing, and the first jobs need not wait
	}
	if fl.choosesSites() {
		fl.allot()
	}
	for _, s := range m.sites {
		fl.startPilots(s)
	}
}

// startPilots asks for the pilots that the site should have more of, and to be
// woken when time alone changes how many.
func (fl *fleet) startPilots(s *site) {
	fl.expireStarts(s)
	if fl.now < s.notBefore {
		fl.monitor.arm(fl.step, s.notBefore)
	} else if n := fl.plan(s); n > 0 {
		for range n {
			s.asked = append(s.asked, fl.now)
		}
		fl.effects.Start = append(fl.effects.Start, Start{Site: s.Name, Count: n})
	}
	if len(s.asked) > 0 {
		fl.monitor.arm(fl.step, s.asked[0].after(fl.config.StartTimeout))
	}
}

// plan returns how many pilots to submit to the site now. The numbers are the
// steps of section IV-A.
func (fl *fleet) plan(s *site) int {
	slots := s.MaxPilots - s.submitted() // 1, 2
	if slots <= 0 {                      // 3, 4
		return 0
	}
	send, inactive := 0, s.inactive()
	for _, needed := range fl.pilotsNeeded(s) { // 5, 6
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
	if short := s.MinIdlePilots - s.pilots[idle] - inactive; short > 0 { // 11, 12
		send += min(slots-send, short)
	}
	if short := s.MinPilots - s.submitted() - send; short > 0 { // 13, 14
		send += min(slots-send, short)
	}
	return send
}

// pilotsNeeded returns, for each group of ready jobs that the site's pilots
// could run, how many pilots would run all of it at once. Where sites are
// weighed it is what the plan of all sites allots to this one.
func (fl *fleet) pilotsNeeded(s *site) []int {
	if fl.choosesSites() {
		return []int{s.pilotsWanted()}
	}
	var needed []int
	for _, l := range fl.queue.levels {
		for _, g := range l.groups {
			if !fl.serves(s, g.class) {
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
