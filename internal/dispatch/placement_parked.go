package dispatch

import (
	"cmp"
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

// rating is how good a pilot is for a job: first by its site, where sites are weighed, then by how
// much of the input it holds, then by how much more it finds in caches of its host, then by how
// many bytes more other pilots of its site pass on, then by whether the outputs of the job belong
// there (together), and last by how little its host does, so that what is made is spread over the
// caches of hosts.
type rating struct {
	score  float64
	weight int64
	host   int64
	near   int64
	beside int
	busy   int
}

func (s rating) above(o rating) bool {
	return cmp.Or(cmp.Compare(o.score, s.score), cmp.Compare(s.weight, o.weight),
		cmp.Compare(s.host, o.host), cmp.Compare(s.near, o.near), s.beside-o.beside, o.busy-s.busy) > 0
}

// rate is how good the pilot is for the job, the outputs of which belong to where the pilot
// at is, if not nil.
func (pl *placement) rate(p *pilot, j *job, at *pilot) rating {
	s := rating{weight: pl.weigh(p, j), busy: p.host.busy}
	if at != nil && p.shares(at) {
		s.beside = 1
	}
	if pl.fleet.choosesSites() {
		s.score = pl.scoreWith(j, p)
	}
	passes := p.info.Address != "" && len(pl.fleet.monitor.byName) > 1
	if !passes && p.info.CacheDir == "" {
		return s
	}
	for i := range j.requests {
		r := &j.requests[i]
		switch {
		case r.read == nil || r.streams() || p.holds(r.read):
		case p.reaches(r.read):
			s.host += pl.weight(r.read)
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

// placeFresh gives the jobs that became ready in this transition to parked pilots.
// While there are pilots that ask it leaves them what no parked pilot holds
// more of, because they may have better things to do.
func (pl *placement) placeFresh(askers []*pilot) {
	fresh := pl.work.fresh
	if len(pl.fleet.parked) == 0 || len(fresh) == 0 {
		return
	}
	slices.SortStableFunc(fresh, func(a, b *job) int {
		if a.effective != b.effective {
			return int(int64(b.effective) - int64(a.effective))
		}
		return int(int64(a.id) - int64(b.id))
	})
	pl.byTurn(fresh, func(j *job) bool {
		if len(pl.fleet.parked) == 0 {
			return false
		}
		if j.group == nil {
			return true
		}
		if p := pl.bestParked(j, askers, len(askers) == 0); p != nil {
			pl.assign(j, p)
		}
		return true
	})
}

// byTurn does something for each of the jobs until that returns false: in their order for those
// of one user, and for each next one by the turns of users, which change meanwhile.
func (pl *placement) byTurn(jobs []*job, do func(*job) bool) {
	if pl.shares.solo {
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
		if len(s.queue) == 0 {
			users = append(users, s)
		}
		s.queue = append(s.queue, j)
	}
	for going := true; len(users) > 0 && going; {
		first := 0
		for i, s := range users {
			if s.precedes(users[first]) < 0 {
				first = i
			}
		}
		s := users[first]
		going = do(s.queue[0])
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil
			users = slices.Delete(users, first, first+1)
		}
	}
	for _, s := range users {
		s.queue = nil
	}
}

// bestParked returns the parked pilot that holds most of the job's input, and
// more than each of the rivals that could start it; nil if the job is kept for
// another. A rival that could only queue it does not count: recall would take
// it back for the parked pilot, for ever. One that asks is a rival even if it is parked: it
// chooses among all ready jobs. Where there are many parked pilots
// all of them are looked at only if that is asked for, and none of the first fits.
func (pl *placement) bestParked(j *job, rivals []*pilot, all bool) *pilot {
	best, most := (*pilot)(nil), rating{score: math.Inf(1)}
	var at *pilot
	known := false
	together := func() *pilot {
		if !known {
			at, known = pl.together(j), true
		}
		return at
	}
	for _, p := range rivals {
		if pl.fleet.takes(p) && pl.admits(p, j.class, false) == always && pl.mayFill(p, j) && pl.allowed(j, p) {
			s := pl.rate(p, j, together())
			s.busy = 0 // it has asked
			if s.above(most) {
				most = s
			}
		}
	}
	consider := func(p *pilot) {
		if p.parked == 0 || p.listedAsker || !pl.mayStart(p, j) {
			return
		}
		if s := pl.rate(p, j, together()); s.above(most) || s == most && best != nil && p.parked < best.parked {
			best, most = p, s
		}
	}
	for _, p := range pl.fleet.parked[:min(len(pl.fleet.parked), pl.compared())] {
		consider(p)
	}
	if len(pl.fleet.parked) > maxPlaces {
		for i := range j.requests {
			if v := j.requests[i].read; v != nil {
				for _, p := range v.holders[:min(len(v.holders), maxPlaces)] {
					consider(p)
				}
			}
		}
		if at := together(); at != nil {
			for _, p := range at.host.pilots[:min(len(at.host.pilots), maxPlaces)] {
				consider(p)
			}
		}
		if best == nil && all {
			pl.searchParked(j, consider, &best)
		}
	}
	if best != nil && pl.keepForOther(j, best) {
		return nil
	}
	return best
}

// searchParked looks at all parked pilots when none of the first fits.
func (pl *placement) searchParked(j *job, consider func(*pilot), best **pilot) {
	somewhere := slices.ContainsFunc(pl.fleet.shapes, func(s *shape) bool { return s.fits(j.class) })
	for i := maxPlaces; somewhere && i < len(pl.fleet.parked) && *best == nil; i++ {
		consider(pl.fleet.parked[i])
	}
}

// offerAvoiding has ready jobs that avoid a host offered to its pilots again, when a pilot has
// gone: it may have been the last that fits them elsewhere.
func (pl *placement) offerAvoiding() {
	for l := range pl.jobs.levels {
		for _, g := range l.groups {
			if name := g.class.key.avoid; name != "" && !pl.fleet.fitsElsewhere(g.class, name) {
				pl.offers++
				for _, p := range pl.fleet.parked {
					if p.info.node() == name {
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
		return j.readySince.after(j.class.key.wait) <= pl.now
	}
	return false
}
