package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// outages holds until when which part of a run cannot be reached or stands still. What
// is not in it can, or does not.
type outages struct {
	cut    map[string]time.Duration // by host
	frozen map[string]time.Duration // by host
	server time.Duration
	count  int
}

// mayCut plans the next cut of a line.
func (r *run) mayCut() {
	f := &r.exp.Faults
	r.plan(f.CutOff.IsZero(), func() time.Duration { return f.CutOff.Draw(r.outage) }, func() {
		if host := r.anyHost(); host != "" {
			r.faced[LineCut]++
			r.outages.cut[host] = max(r.outages.cut[host], r.now+f.CutFor.Draw(r.outage))
		}
	})
}

// mayFreeze plans the next host, pilot or server that stands still for a while.
func (r *run) mayFreeze() {
	f := &r.exp.Faults
	r.plan(f.Freezes.IsZero(), func() time.Duration { return f.Freezes.Draw(r.outage) }, func() {
		until := r.now + f.FrozenFor.Draw(r.outage)
		switch p := r.anyPilot(); {
		case r.outage.IntN(4) == 0:
			r.faced[ServerFrozen]++
			r.outages.server = max(r.outages.server, until)
		case p == nil:
		case r.outage.IntN(2) == 0:
			r.faced[PilotFrozen]++
			p.frozen = max(p.frozen, until)
		default:
			r.faced[HostFrozen]++
			r.outages.frozen[p.slot.host] = max(r.outages.frozen[p.slot.host], until)
		}
	})
}

// plan has something happen again and again, until there were as many outages as there
// may be.
func (r *run) plan(never bool, wait func() time.Duration, happen func()) {
	if never || r.exp.Faults.Outages > 0 && r.outages.count >= r.exp.Faults.Outages {
		return
	}
	r.after(wait(), func() {
		r.outages.count++
		happen()
		r.plan(never, wait, happen)
	})
}

// anyPilot is one that lives and has called, nil if there is none.
func (r *run) anyPilot() *pilot {
	ids := slices.Sorted(maps.Keys(r.server.pilots))
	ids = slices.DeleteFunc(ids, func(id taskqueue.PilotID) bool { return r.server.pilots[id].dead })
	if len(ids) == 0 {
		return nil
	}
	return r.server.pilots[ids[r.outage.IntN(len(ids))]]
}

func (r *run) anyHost() string {
	if p := r.anyPilot(); p != nil {
		return p.slot.host
	}
	return ""
}

// waitsForThaw has f called when the pilot goes on, if it stands still.
func (p *pilot) waitsForThaw(f func()) bool {
	until := max(p.frozen, p.run.outages.frozen[p.slot.host])
	if until <= p.run.now {
		return false
	}
	p.run.at(until, f)
	return true
}

// waitsForThaw has f called when the server goes on, if it stands still.
func (s *server) waitsForThaw(f func()) bool {
	if s.run.outages.server <= s.run.now {
		return false
	}
	s.run.at(s.run.outages.server, f)
	return true
}

// loseSight has the batch system forget a launch whose pilot runs on. It has ended then,
// and whoever is of it is refused when it calls.
func (s *site) loseSight(p *pilot) {
	if p.dead {
		return
	}
	s.run.faced[RunningForgotten]++
	for _, at := range s.batch.slots {
		if at.launch == p.slot.launch && at.pilot != nil {
			at.pilot.unwanted = true
		}
	}
	s.run.server.submit(taskqueue.PilotEnded{Launch: p.slot.launch, Reason: "is not known to the batch system any more"})
}

// endBoth is what becomes of a launch that a batch system has started twice, when that
// is seen.
func (b *batch) endBoth(launch string) {
	for _, s := range b.slots {
		if s.launch == launch && s.pilot != nil && !s.pilot.dead {
			s.pilot.leave()
		}
	}
}

// twin is the identity of a further pilot of a launch.
func twin(launch string, n int) taskqueue.PilotID {
	if n < 2 {
		return taskqueue.PilotID("p-" + launch)
	}
	return taskqueue.PilotID(fmt.Sprintf("p-%s-%d", launch, n))
}
