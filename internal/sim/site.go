package sim

import (
	"fmt"
	"time"

	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// site is a batch system with its worker nodes.
type site struct {
	experiment.SiteSpec
	run     *run
	element *element
	batch   *batch
	spaces  map[string]*space // by host, or one for the whole site
	hosts   map[string]*link  // their processors, where jobs slow each other down
}

// occupy starts the pilots of a site that run from the start.
func (s *site) occupy() {
	for range s.Started {
		b := s.batch
		b.count++
		at := b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
		at.launch = s.launchName(b.count)
		b.charge(1)
		s.run.server.submit(taskqueue.PilotSubmitted{Site: s.Name, Launch: at.launch})
		s.startPilot(at)
	}
}

// startPilot begins a pilot in a slot.
func (s *site) startPilot(at *slot) {
	r := s.run
	id := twin(at.launch, s.batch.started[at.launch])
	p := &pilot{run: r, id: id, site: s, slot: at, seen: map[taskqueue.AttemptID]bool{}, expiry: s.SaysLife}
	p.timer = newAlarm(&r.engine, p.speak)
	at.pilot = p
	p.space = s.spaceOf(at.host)
	own := Stream(r.seed, "pilot", named(string(id)))
	if !s.Life.IsZero() {
		p.expires = r.now + s.Life.Draw(own)
		r.at(p.expires, p.die)
	}
	if f := r.exp.Faults; !f.PilotDies.IsZero() {
		r.after(f.PilotDies.Draw(own), func() {
			if !p.dead && (f.PilotDeaths == 0 || r.faced[PilotDied] < f.PilotDeaths) {
				r.faced[PilotDied]++
				p.die()
			}
		})
	}
	if s.Batch.Lose > 0 && own.Float64() < float64(s.Batch.Lose) {
		r.after(time.Duration(own.Int64N(int64(time.Hour))), func() { s.loseSight(p) })
	}
	r.pilots++
	if s.Ask > 0 && r.now == 0 {
		r.after(time.Duration(own.Int64N(int64(s.Ask))), p.begin)
		return
	}
	p.begin()
}

// spaceOf returns the cache that a pilot uses.
func (s *site) spaceOf(host string) *space {
	key := ""
	switch s.run.exp.Cache.Share {
	case experiment.NoCache:
		return nil
	case experiment.PilotCache:
		return newSpace(s.run.exp.Cache)
	case experiment.HostCache:
		key = host
	}
	if s.spaces[key] == nil {
		s.spaces[key] = newSpace(s.run.exp.Cache)
	}
	return s.spaces[key]
}

func (s *site) launchName(n int) string { return fmt.Sprintf("%s.%d", s.Name, n) }

// submitPilots hands pilots to the batch system, whose answer may be late.
func (s *site) submitPilots(n int) {
	for range n {
		launch, ok := s.batch.submit(s.startPilot, s.run.notice("the batch system does not know it"))
		if !ok {
			return
		}
		late := s.Batch.Late.Draw(s.batch.rand)
		s.batch.answered[launch] = s.run.now + late
		s.run.after(late, func() {
			if s.batch.queue[launch] == nil {
				s.run.faced[AnsweredLate]++
			}
			s.run.server.submit(taskqueue.PilotSubmitted{Site: s.Name, Launch: launch})
		})
	}
}

func (s *server) withdraw(launch string) {
	for _, site := range s.run.sites {
		if site.batch.queue[launch] != nil {
			site.batch.withdraw(launch)
			s.run.noticeEnd(site, launch)
		}
	}
}

// noticeEnd tells the server that a launch has left the batch system.
func (r *run) noticeEnd(s *site, launch string) {
	if r.server == nil {
		return
	}
	r.at(s.batch.noticed(launch), func() { r.notice("ended")(launch) })
}

// notice returns what tells the server of the end of a launch.
func (r *run) notice(reason string) func(launch string) {
	return func(launch string) { r.server.submit(taskqueue.PilotEnded{Launch: launch, Reason: reason}) }
}
