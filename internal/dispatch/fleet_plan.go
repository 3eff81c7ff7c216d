package dispatch

import (
	"time"

	"fairway/internal/dispatch/estimate"
	"fairway/internal/dispatch/pilotplan"
)

// maxAllotted bounds the ready jobs that are looked at for one plan of all
// sites. Where there are more, each stands for several.
const maxAllotted = 1024

// allot shares the ready jobs out among the sites, each to the one that suits
// it best as things would be then, and so finds how many pilots each should have
// besides those that are registered.
func (fl *fleet) allot() {
	fl.listRooms()
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
		free := s.outlook.rooms.Next()
		if free == nil {
			continue
		}
		score := fl.score(j, s, s.farBytes(j, nil), free.In)
		if free.Starts {
			score += fl.charge(j, s)
		}
		if best == nil || score < least {
			best, least = s, score
		}
	}
	if best != nil {
		per := best.jobsPerPilot(j.class)
		best.outlook.rooms.Give((n*j.class.tasks()*pilotplan.Whole+per-1)/per, j.class.gang(), fl.runAt(j, best))
	}
}

// listRooms lists the room of all sites: of idle pilots now, of busy ones when half
// their run is over, of those that wait in the batch system when they come, and
// of those that could be submitted.
func (fl *fleet) listRooms() {
	fl.averageWaits()
	for _, s := range fl.monitor.sites {
		free := max(0, s.MaxPilots-s.submitted())
		if fl.now < s.notBefore {
			free = 0
		}
		s.outlook.rooms = append(s.outlook.rooms[:0],
			pilotplan.Room{Size: s.pilots[idle] * pilotplan.Whole},
			pilotplan.Room{Size: s.pilots[busy] * pilotplan.Whole, In: fl.usualRun() / 2},
			pilotplan.Room{Size: s.inactive() * pilotplan.Whole, In: s.stillWaits(), Starts: true},
			// as is usual, or as those that wait have done already
			pilotplan.Room{Size: free * pilotplan.Whole, In: max(s.usualWait(), s.outlook.age), Starts: true},
		)
	}
}

// averageWaits finds how long the pilots that have not registered have waited, in the
// mean of each site.
func (fl *fleet) averageWaits() {
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
