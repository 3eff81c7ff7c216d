package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// explainTurn says where the user of a ready job stands in line, and what limits keep the job.
func (c *Core) explainTurn(j *job, e *Explanation) {
	for _, x := range j.class.pools {
		if n := x.n * int64(j.class.tasks()); x.pool.used+n > x.pool.most {
			e.say("needs %d %s, and of %d that all jobs together may have %d are in use", n, x.pool.name, x.pool.most,
				x.pool.used)
		} else if k := x.pool.keptFor; k != nil && k != j && c.now < x.pool.keptUntil {
			e.say("%s is kept for job %s, which was passed over for too long", x.pool.name, k.name)
		}
	}
	if c.shares.Alone() {
		return
	}
	s := j.share()
	for x := range s.Up {
		explainQuota(x, e)
	}
	c.explainRank(s, e)
	if n := c.before(j); n > 0 {
		e.say("jobs of the same user that are ready and go before it: %d", n)
	}
}

// explainQuota tells which quotas the share has reached.
func explainQuota(s *share, e *Explanation) {
	if why := s.Held(); why != "" {
		e.say("no further job is started: %s", why)
	}
	q, has := &s.Said().Limits, s.Takes()
	if q.Running > 0 && has.Running >= q.Running {
		e.say("%s may have %d jobs running, and has %d", s.Title(), q.Running, has.Running)
	}
	if q.MilliCPUs > 0 && has.MilliCPUs >= q.MilliCPUs {
		e.say("%s may have %g cores, and has %g", s.Title(), float64(q.MilliCPUs)/1000, float64(has.MilliCPUs)/1000)
	}
	if q.Stored > 0 && s.Stored() >= q.Stored {
		e.say("%s has stored %s, and may store %s: remove runs, and its jobs go on", s.Title(), ofBytes.text(s.Stored()),
			ofBytes.text(q.Stored))
	}
	for _, site := range slices.Sorted(maps.Keys(q.Sites)) {
		t := s.At(site)
		if most := q.Sites[site]; most.Running > 0 && t.Running >= most.Running ||
			most.MilliCPUs > 0 && t.MilliCPUs >= most.MilliCPUs {
			e.say("%s has all that it may have at site %s: jobs %d, cores %g", s.Title(), site, t.Running,
				float64(t.MilliCPUs)/1000)
		}
	}
}

// maxBefore bounds the users before one who are named.
const maxBefore = 3

// explainRank tells the turn of a user, and how it comes to that.
func (c *Core) explainRank(s *share, e *Explanation) {
	var before []string
	turn, users := 0, 0
	for x := range c.shares.InOrder {
		users++
		if x == s {
			turn = users
		} else if turn == 0 {
			before = append(before, x.Title())
		}
	}
	if turn == 0 {
		return // its run is halted
	}
	text := fmt.Sprintf("%s is number %d of %d with ready jobs", s.Title(), turn, users)
	if more := len(before) - maxBefore; more > 0 {
		before = append(before[:maxBefore], fmt.Sprintf("%d more", more))
	}
	if len(before) > 0 {
		text += ", behind " + strings.Join(before, ", ")
	}
	e.say("%s", text)
	for x := range s.Up {
		others := c.shares.Siblings(x)
		if others == 0 {
			continue
		}
		v := c.shares.view(x, 0, 0)
		e.say("%s has a share of %.1f %% beside %d more, and %.1f %% of what all these have used: %v of slots", x.Title(),
			100*v.Share, others, 100*v.Used, v.Usage.Round(time.Second))
	}
}

// before is how many ready jobs of the user are of a higher priority, or of the same and a lower rank.
func (c *Core) before(j *job) (n int) {
	for _, l := range j.share().Own.levels {
		for _, g := range l.groups {
			switch {
			case l.priority > j.effective:
				n += g.ready
			case l.priority == j.effective:
				for _, row := range g.ranks {
					if row < j.row && c.jobs.isReady(row, g) {
						n++
					}
				}
			}
		}
	}
	return n
}
