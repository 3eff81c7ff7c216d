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
	if c.shares.solo {
		return
	}
	s := j.share()
	for x := range s.up {
		x.explainQuota(e)
	}
	c.explainRank(s, e)
	if n := c.before(j); n > 0 {
		e.say("jobs of the same user that are ready and go before it: %d", n)
	}
}

// explainQuota tells which quotas the share has reached.
func (s *share) explainQuota(e *Explanation) {
	q := &s.quota
	if q.Running > 0 && s.attempts >= q.Running {
		e.say("%s may have %d jobs running, and has %d", s.title(), q.Running, s.attempts)
	}
	if q.MilliCPUs > 0 && s.cpus >= q.MilliCPUs {
		e.say("%s may have %g cores, and has %g", s.title(), float64(q.MilliCPUs)/1000, float64(s.cpus)/1000)
	}
	if q.Stored > 0 && s.stored >= q.Stored {
		e.say("%s has stored %s, and may store %s: remove runs, and its jobs go on", s.title(), ofBytes.text(s.stored),
			ofBytes.text(q.Stored))
	}
	for _, site := range slices.Sorted(maps.Keys(q.Sites)) {
		t := s.atSite[site]
		if t == nil {
			continue
		}
		if most := q.Sites[site]; most.Running > 0 && t.running >= most.Running ||
			most.MilliCPUs > 0 && t.cpus >= most.MilliCPUs {
			e.say("%s has all that it may have at site %s: jobs %d, cores %g", s.title(), site, t.running, float64(t.cpus)/1000)
		}
	}
}

// maxBefore bounds the users before one who are named.
const maxBefore = 3

// explainRank tells the turn of a user, and how it comes to that.
func (c *Core) explainRank(s *share, e *Explanation) {
	var before []string
	turn, users := 0, 0
	for x := range c.shares.inOrder {
		users++
		if x == s {
			turn = users
		} else if turn == 0 {
			before = append(before, x.title())
		}
	}
	if turn == 0 {
		return // its run is halted
	}
	text := fmt.Sprintf("%s is number %d of %d with ready jobs", s.title(), turn, users)
	if more := len(before) - maxBefore; more > 0 {
		before = append(before[:maxBefore], fmt.Sprintf("%d more", more))
	}
	if len(before) > 0 {
		text += ", behind " + strings.Join(before, ", ")
	}
	e.say("%s", text)
	for x := range s.up {
		others := x.others(&c.shares)
		if others == 0 {
			continue
		}
		v := x.viewed(0, c.shares.scale(), 0)
		e.say("%s has a share of %.1f %% beside %d more, and %.1f %% of what all these have used: %v of slots", x.title(),
			100*v.Share, others, 100*v.Used, v.Usage.Round(time.Second))
	}
}

// others is how many shares stand beside this one.
func (s *share) others(sh *shares) int {
	switch {
	case s.parent == nil:
		return 0
	case s.parent == sh.root && !sh.anybody:
		return len(s.parent.children) - 2 // without nobody
	}
	return len(s.parent.children) - 1
}

// before is how many ready jobs of the user are of a higher priority, or of the same and a lower rank.
func (c *Core) before(j *job) (n int) {
	for _, l := range j.share().levels {
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
