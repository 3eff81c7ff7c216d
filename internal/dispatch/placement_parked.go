package dispatch

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// maxPlaces bounds the parked pilots that are compared for one job that
// became ready: all of them where there are no more than that, else of each
// input the first maxPlaces holders, and the first maxPlaces parked.
const maxPlaces = 64

// maxSited takes the place of maxPlaces where sites are weighed: the best site
// has to be among them.
const maxSited = 1024

// rating is how good a pilot is for a job: first by whether it begins jobs, then by its site, where sites are weighed,
// then by how much of the input it holds, then by how much more it finds in caches of its host, then by how
// many bytes more other pilots of its site pass on, then by whether the outputs of the job belong
// there (together), and last by how little its host does, so that what is made is spread over the
// caches of hosts.
type rating struct {
	begins int // 0: it withholds jobs; what others may begin is not tried there
	score  float64
	weight int64
	host   int64
	near   int64
	beside int
	busy   int
}

func (s rating) above(o rating) bool {
	return cmp.Or(s.begins-o.begins, cmp.Compare(o.score, s.score), cmp.Compare(s.weight, o.weight),
		cmp.Compare(s.host, o.host), cmp.Compare(s.near, o.near), s.beside-o.beside, o.busy-s.busy) > 0
}

// rate is how good the pilot is for the job, the outputs of which belong to where the pilot
// at is, if not nil.
func (pl *placement) rate(p *pilot, j *job, at *pilot) rating {
	rule := pl.ruleFor(j.class, p)
	s := rating{weight: pl.weighBy(rule, p, j), busy: p.host.busy}
	if !p.record.withholds {
		s.begins = 1
	}
	if at != nil && p.sharesCacheWith(at) {
		s.beside = 1
	}
	if pl.fleet.choosesSites() {
		s.score = pl.scoreWith(j, p)
	}
	passes := p.info.Address != "" && len(pl.fleet.monitor.byName) > 1
	if !passes && p.info.CacheDir == "" {
		return s
	}
	if p.findsSaved(j) {
		s.host += rule.Weight(j.saved().Size)
	}
	for i := range j.requests {
		r := &j.requests[i]
		switch {
		case r.read == nil || r.streams() || p.holds(r.read):
		case p.reaches(r.read):
			s.host += rule.Weight(r.read.size)
		case passes && pl.fleet.passedOn(r.read, p, true):
			s.near += r.read.size
		}
	}
	return s
}

// compared is how many of the parked pilots are compared.
func (pl *placement) compared() int {
	if pl.fleet.choosesSites() {
		return maxSited
	}
	return maxPlaces
}

// placeFresh gives the jobs that became ready in this transition to parked pilots, and with them the
// kept ones that are due, in the order of all of these. While there are pilots that ask it leaves
// them what no parked pilot holds more of, because they may have better things to do. After that, a
// kept job that no parked pilot takes is there for those that ask.
func (pl *placement) placeFresh(askers []*pilot) {
	last, due := len(askers) == 0, pl.delayed.due
	if len(pl.work.fresh) == 0 && !due || len(pl.fleet.parked) == 0 && (!due || !last) {
		return
	}
	jobs := pl.work.fresh
	if due {
		jobs = pl.withDelayed(jobs)
		pl.delayed.due = !last
	}
	slices.SortStableFunc(jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(b.effective, a.effective), cmp.Compare(a.id, b.id))
	})
	pl.byTurn(jobs, func(j *job) bool {
		if len(pl.fleet.parked) == 0 && (!due || !last) {
			return false
		}
		if j.group == nil {
			return true
		}
		pl.delayed.some = false
		if p := pl.bestParked(j, askers, last); p != nil {
			pl.assign(j, p)
			pl.placed = append(pl.placed, p)
		} else if due && last && !pl.delayed.some {
			pl.endDelay(j)
		}
		return true
	})
}

// withDelayed appends the kept jobs to those that became ready, in an order of their own.
func (pl *placement) withDelayed(fresh []*job) []*job {
	all := slices.Clone(fresh)
	for _, row := range slices.Sorted(maps.Keys(pl.delayed.jobs)) {
		if j := pl.jobs.table.At(row); !j.freshly {
			all = append(all, j)
		}
	}
	return all
}

// byTurn does something for each of the jobs until that returns false: in their order for those
// of one user, and for each next one by the turns of users, which change meanwhile.
func (pl *placement) byTurn(jobs []*job, do func(*job) bool) {
	if pl.shares.Alone() {
		for _, j := range jobs {
			if !do(j) {
				return
			}
		}
		return
	}
	var users []*share
	for _, j := range jobs {
		s := j.share()
		if len(s.Own.queue) == 0 {
			users = append(users, s)
		}
		s.Own.queue = append(s.Own.queue, j)
	}
	for going := true; len(users) > 0 && going; {
		first := 0
		for i, s := range users {
			if s.Precedes(users[first]) < 0 {
				first = i
			}
		}
		s := users[first]
		going = do(s.Own.queue[0])
		if s.Own.queue = s.Own.queue[1:]; len(s.Own.queue) == 0 {
			s.Own.queue = nil
			users = slices.Delete(users, first, first+1)
		}
	}
	for _, s := range users {
		s.Own.queue = nil
	}
}

// bestParked returns the parked pilot that holds most of the job's input, and
// more than each of the rivals that could start it; nil if the job is kept for
// another. A rival that could only queue it does not count: recall would take
// it back for the parked pilot, for ever. One that asks is a rival even if it is parked: it
// chooses among all ready jobs. Where there are many parked pilots
// all of them are looked at only if that is asked for, and none of the first fits.
func (pl *placement) bestParked(j *job, rivals []*pilot, all bool) *pilot {
	s := parkedSearch{pl: pl, job: j, most: rating{score: math.Inf(1)}}
	s.outdo(rivals)
	s.consider(pl.fleet.parked[:min(len(pl.fleet.parked), pl.compared())])
	if len(pl.fleet.parked) > maxPlaces {
		s.considerHolders()
		if s.best == nil && all {
			s.considerRest()
		}
	}
	if s.best != nil && pl.keepForOther(j, s.best) {
		return nil
	}
	return s.best
}

// parkedSearch looks for the parked pilot that a job belongs to most.
type parkedSearch struct {
	pl     *placement
	job    *job
	best   *pilot // so far; nil: none is above the rivals
	most   rating // of best, or of the best rival
	beside *pilot // see together
	looked bool   // beside is known
}

// together is where the outputs of the job belong; it is looked up when the first pilot is rated.
func (s *parkedSearch) together() *pilot {
	if !s.looked {
		s.beside, s.looked = s.pl.together(s.job), true
	}
	return s.beside
}

// outdo has only pilots count that are above the rivals which could start the job.
func (s *parkedSearch) outdo(rivals []*pilot) {
	for _, p := range rivals {
		if !p.record.withholds && s.pl.fleet.takes(p) && s.pl.admits(p, s.job.class, false) == always && s.pl.mayFill(p,
			s.job) &&
			s.pl.allowed(s.job, p) {
			r := s.pl.rate(p, s.job, s.together())
			r.busy = 0 // it has asked
			if r.above(s.most) {
				s.most = r
			}
		}
	}
}

// consider compares the pilots that are parked, and could start the job, with the best so far. Of
// equal ones that counts which has waited longest.
func (s *parkedSearch) consider(pilots []*pilot) {
	for _, p := range pilots {
		if p.seat.parked == 0 || p.seat.listedAsker || !s.pl.mayStart(p, s.job) {
			continue
		}
		r := s.pl.rate(p, s.job, s.together())
		if r.above(s.most) || r == s.most && s.best != nil && p.seat.parked < s.best.seat.parked {
			s.best, s.most = p, r
		}
	}
}

// considerHolders looks at pilots that hold an input of the job or its checkpoint, or are where its
// outputs belong.
func (s *parkedSearch) considerHolders() {
	for v := range s.job.inputs {
		s.consider(v.holders[:min(len(v.holders), maxPlaces)])
	}
	if s.job.saved() != nil {
		for _, p := range s.pl.fleet.parked {
			if p.holdsSaved(s.job) {
				s.consider([]*pilot{p})
			}
		}
	}
	if at := s.together(); at != nil {
		s.consider(at.host.pilots[:min(len(at.host.pilots), maxPlaces)])
	}
}

// considerRest looks at all parked pilots, until one fits.
func (s *parkedSearch) considerRest() {
	if !slices.ContainsFunc(s.pl.fleet.shapes, func(x *shape) bool { return x.fits(s.job.class) }) {
		return
	}
	for i := maxPlaces; i < len(s.pl.fleet.parked) && s.best == nil; i++ {
		s.consider(s.pl.fleet.parked[i : i+1])
	}
}

// offerAvoiding has ready jobs that avoid a host, or that a doubted one does not get, offered to its pilots
// again, when a pilot has gone or come: it may have been the last that fits them elsewhere.
func (pl *placement) offerAvoiding() {
	for _, h := range pl.fleet.nodes.Doubted() {
		if at := pl.fleet.hosts[h.Name]; at != nil && pl.jobs.ready > 0 {
			pl.offers++
			for _, p := range at.pilots {
				pl.fleet.wantsJobs(p)
			}
		}
	}
	if !pl.jobs.avoids {
		return
	}
	for l := range pl.jobs.levels {
		for _, g := range l.groups {
			if name := g.class.key.avoid; name != "" && !pl.fleet.elsewhere(g.class, name) {
				pl.offers++
				for _, p := range pl.fleet.parked {
					if p.host.name == name {
						pl.fleet.wantsJobs(p)
					}
				}
			}
		}
	}
}

func (pl *placement) mayStart(p *pilot, j *job) bool {
	if !pl.mayFill(p, j) || !pl.allowed(j, p) {
		return false
	}
	switch pl.admits(p, j.class, false) {
	case always:
		return true
	case onTime:
		return j.readySince.After(j.class.key.wait) <= pl.now
	}
	return false
}
