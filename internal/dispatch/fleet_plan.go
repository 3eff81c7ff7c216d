package dispatch

import (
	"cmp"
	"slices"
	"time"

	"fairway/internal/dispatch/estimate"
)

// maxAllotted bounds the ready jobs that are looked at for one plan of all
// sites. Where there are more, each stands for several.
const maxAllotted = 1024

// wholePilot is the unit in which the room of pilots is counted.
const wholePilot = 1000

// line is the room of a site, by when it is expected to be free.
type siteRooms []roomFrom

// roomFrom is room that becomes free at a time.
type roomFrom struct {
	in     time.Duration // from now
	room   int           // in thousandths of a pilot
	used   int           // of the room that is free then
	starts bool          // these pilots have not registered
	wanted int           // of the room of pilots that have not registered
}

// next returns the room that is free first, or nil if the site has none.
func (l siteRooms) next() *roomFrom {
	var first *roomFrom
	for i := range l {
		if s := &l[i]; s.room > 0 && (first == nil || s.in < first.in) {
			first = s
		}
	}
	return first
}

// take gives room away for a time.
func (s *roomFrom) take(room int, run time.Duration) {
	if s.starts {
		s.wanted = min(s.wanted+room, s.room)
	}
	for s.used += room; s.used >= s.room; s.used -= s.room {
		s.in += run
	}
}

// give gives room away for a time: what is free first, one after the other; together says that all of
// it is needed at the same time.
func (l siteRooms) give(room int, together bool, run time.Duration) {
	if !together {
		l.next().take(room, run)
		return
	}
	order := make([]int, len(l))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l[a].in, l[b].in) })
	for _, i := range order {
		if part := min(room, l[i].room); part > 0 {
			l[i].take(part, run)
			room -= part
		}
	}
}

// allot shares the ready jobs out among the sites, each to the one that suits
// it best as things would be then, and so finds how many pilots each should have
// besides those that are registered.
func (fl *fleet) allot() {
	fl.lineUp()
	each := max(1, (fl.jobs.ready+maxAllotted-1)/maxAllotted)
	for g, n := range fl.jobs.startable {
		fl.allotGroup(g, n, each)
	}
}

// allotGroup does so with up to most jobs of a group.
func (fl *fleet) allotGroup(g *group, most, each int) {
	var sites []*site
	for _, s := range fl.monitor.sites {
		if fl.serves(s, g.class) {
			sites = append(sites, s)
		}
	}
	n := 0
	for _, id := range g.ranks {
		if !fl.jobs.isReady(id, g) {
			continue
		}
		if n == most {
			return
		}
		if n%each == 0 {
			fl.allotJobs(fl.jobs.table.At(id), sites, each)
		}
		n++
	}
}

// allotJobs gives the job, and those that it stands for, to the site with the
// least score.
func (fl *fleet) allotJobs(j *job, sites []*site, n int) {
	var best *site
	var least float64
	for _, s := range sites {
		free := s.outlook.rooms.next()
		if free == nil {
			continue
		}
		score := fl.score(j, s, s.farBytes(j, nil), free.in)
		if free.starts {
			score += fl.charge(j, s)
		}
		if best == nil || score < least {
			best, least = s, score
		}
	}
	if best != nil {
		per := best.jobsPerPilot(j.class)
		best.outlook.rooms.give((n*j.class.tasks()*wholePilot+per-1)/per, j.class.gang(), fl.runAt(j, best))
	}
}

// lineUp lists the room of all sites: of idle pilots now, of busy ones when half
// their run is over, of those that wait in the batch system when they come, and
// of those that could be submitted.
func (fl *fleet) lineUp() {
	fl.ages()
	for _, s := range fl.monitor.sites {
		free := max(0, s.MaxPilots-s.submitted())
		if fl.now < s.notBefore {
			free = 0
		}
		s.outlook.rooms = append(s.outlook.rooms[:0],
			roomFrom{room: s.pilots[idle] * wholePilot},
			roomFrom{room: s.pilots[busy] * wholePilot, in: fl.usualRun() / 2},
			roomFrom{room: s.inactive() * wholePilot, in: s.stillWaits(), starts: true},
			// as is usual, or as those that wait have done already
			roomFrom{room: free * wholePilot, in: max(s.usualWait(), s.outlook.age), starts: true},
		)
	}
}

// ages finds how long the pilots that have not registered have waited, in the
// mean of each site.
func (fl *fleet) ages() {
	for _, s := range fl.monitor.sites {
		s.outlook.age = 0
	}
	for _, l := range fl.monitor.launches {
		if l.standing == inactive && l.submitted != 0 {
			l.site.outlook.age += time.Duration(fl.now - l.submitted)
		}
	}
	for _, s := range fl.monitor.sites {
		s.outlook.age /= time.Duration(max(1, s.pilots[inactive]))
	}
}

// usualRun is how long an attempt is expected to take if nothing is known of its step.
func (fl *fleet) usualRun() time.Duration {
	if !fl.transfers.run.IsKnown() {
		return assumedRun
	}
	return estimate.Seconds(fl.transfers.run.Value())
}

// pilotsWanted is how many pilots the last plan wants at the site besides those
// that are registered.
func (s *site) pilotsWanted() int {
	sum := 0
	for _, x := range s.outlook.rooms {
		sum += x.wanted
	}
	return (sum + wholePilot - 1) / wholePilot
}
