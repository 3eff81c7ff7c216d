package dispatch

import (
	"math"
	"slices"
)

// maxPlaces bounds the parked pilots that are compared for one job that
// became ready: all of them where there are no more than that, else of each
// input the first maxPlaces holders, and the first maxPlaces parked.
const maxPlaces = 64

// updateSpare keeps the list of parked pilots that could start a job now, and
// the number of idle ones that are between two Syncs.
func (c *Core) updateSpare(p *pilot) {
	if between := p.held == 0 && len(p.attempts) == 0 && c.takes(p); between != p.between {
		p.between = between
		if between {
			c.between++
		} else {
			c.between--
		}
	}
	is := p.held != 0 && p.reserved == nil && c.takes(p) && p.used.milliCPUs < p.totalCPUs() && !p.expired(c.now)
	switch {
	case is && p.spare == 0:
		c.spare = append(c.spare, p)
		p.spare = len(c.spare)
	case !is && p.spare > 0:
		last := c.spare[len(c.spare)-1]
		c.spare[p.spare-1] = last
		last.spare = p.spare
		c.spare = c.spare[:len(c.spare)-1]
		p.spare = 0
	}
}

// placeFresh gives the jobs that became ready in this step to parked pilots.
// While there are pilots that ask it leaves them what no parked pilot holds
// more of, because they may have better things to do.
func (c *Core) placeFresh(askers []*pilot) {
	fresh := c.work.fresh
	if len(c.spare) == 0 || len(fresh) == 0 {
		return
	}
	slices.SortStableFunc(fresh, func(a, b *job) int {
		if a.effective != b.effective {
			return int(int64(b.effective) - int64(a.effective))
		}
		return int(int64(a.id) - int64(b.id))
	})
	rivals := c.unparked(askers)
	for _, j := range fresh {
		if len(c.spare) == 0 {
			return
		}
		if j.state != Ready {
			continue
		}
		if p := c.bestSpare(j, rivals, len(askers) == 0); p != nil {
			c.assign(j, p)
		}
	}
}

// unparked returns those of the askers that are not parked with room left.
func (c *Core) unparked(askers []*pilot) []*pilot {
	c.rivals = c.rivals[:0]
	for _, p := range askers {
		if p.spare == 0 {
			c.rivals = append(c.rivals, p)
		}
	}
	return c.rivals
}

// bestSpare returns the parked pilot that holds most of the job's input, and
// more than each of the rivals that could start it; nil if the job is kept for
// another. A rival that could only queue it does not count: recall would take
// it back for the parked pilot, for ever. Where there are many parked pilots
// all of them are looked at only if that is asked for, and none of the first fits.
func (c *Core) bestSpare(j *job, rivals []*pilot, all bool) *pilot {
	best, most := (*pilot)(nil), suitability{score: math.Inf(1)}
	for _, p := range rivals {
		if c.takes(p) && c.admits(p, j.class, false) == always {
			if s := c.suits(p, j); s.above(most) {
				most = s
			}
		}
	}
	consider := func(p *pilot) {
		if p.spare == 0 || !c.mayStart(p, j) {
			return
		}
		if s := c.suits(p, j); s.above(most) || s == most && best != nil && p.spare < best.spare {
			best, most = p, s
		}
	}
	for _, p := range c.spare[:min(len(c.spare), c.places())] {
		consider(p)
	}
	if len(c.spare) > maxPlaces {
		for i := range j.requests {
			if v := j.requests[i].read; v != nil {
				for _, p := range v.holders[:min(len(v.holders), maxPlaces)] {
					consider(p)
				}
			}
		}
		if best == nil && all {
			c.searchSpare(j, consider, &best)
		}
	}
	if best != nil && c.keepBack(j, best) {
		return nil
	}
	return best
}

// searchSpare looks at all parked pilots when none of the first fits.
func (c *Core) searchSpare(j *job, consider func(*pilot), best **pilot) {
	suits := slices.ContainsFunc(c.shapes, func(s *shape) bool { return s.pilots > 0 && s.suits(j.class) })
	for i := maxPlaces; suits && i < len(c.spare) && *best == nil; i++ {
		consider(c.spare[i])
	}
}

func (c *Core) mayStart(p *pilot, j *job) bool {
	switch c.admits(p, j.class, false) {
	case always:
		return true
	case onTime:
		return j.readySince.after(j.class.key.wait) <= c.now
	}
	return false
}

func (p *pilot) expired(now instant) bool {
	return !p.info.Expires.IsZero() && toInstant(p.info.Expires) <= now
}
