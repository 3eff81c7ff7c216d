package dispatch

import (
	"slices"
	"time"

	"fairway/internal/dispatch/estimate"
	"fairway/internal/taskqueue"
)

// HalfLife is that of usage.
func (c *Core) HalfLife() time.Duration { return c.shares.HalfLife() }

// Limits returns those over all runs, by name.
func (c *Core) Limits() (list []taskqueue.LimitView) {
	for _, name := range sortedKeys(c.shares.pools) {
		p := c.shares.pools[name]
		list = append(list, taskqueue.LimitView{Name: p.name, Most: p.most, Used: p.used})
	}
	return list
}

// Queued is how many jobs of a user, or of the nearest group of that with a limit for it, are waiting or
// ready in runs that go on, and how many may be: 0 where that is not bounded.
func (c *Core) Queued(a taskqueue.Account) (of string, queued, most int) {
	for s := range c.shares.Known(a).Up {
		may := s.Said().Limits.Queued
		if may == 0 {
			continue
		}
		if n := queuedOf(s); most == 0 || may-n < most-queued {
			of, queued, most = s.Title(), n, may
		}
	}
	return of, queued, most
}

func queuedOf(s *share) (n int) {
	for x := range s.All() {
		for _, r := range x.Own.runs {
			if r.halted() { // nothing of it waits for a pilot
				continue
			}
			n += r.totals.ByState[taskqueue.Waiting] + r.totals.ByState[taskqueue.Ready]
		}
	}
	return n
}

// SharesSaid returns what the last SetShares said.
func (c *Core) SharesSaid() taskqueue.Shares { return c.shares.Said() }

// Shares returns all groups and users: those of a group after it, by their level fair share.
// Runs without an account are those of the user "".
func (c *Core) Shares() []taskqueue.ShareView {
	ranks := c.shares.Ranks()
	var list []taskqueue.ShareView
	var view func(*share, int)
	view = func(s *share, depth int) {
		for _, x := range s.ByTurn() {
			list = append(list, c.shares.view(x, depth, ranks[x]))
			view(x, depth+1)
		}
	}
	view(c.shares.Root(), 0)
	if !c.shares.Anybody() {
		list = slices.DeleteFunc(list, func(v taskqueue.ShareView) bool { return v.User && v.Name == "" })
	}
	return list
}

func (sh *shares) view(s *share, depth, rank int) taskqueue.ShareView {
	return taskqueue.ShareView{
		Name: s.Name(), User: s.User(), Depth: depth, Weight: s.Said().Weight, Share: s.WeightPart(),
		Usage: estimate.Seconds(sh.Used(sh.now, s)), Used: s.UsagePart(), LevelFS: s.LevelFS(), Rank: rank,
		Ready: s.Ready(), Running: s.Takes().Running, CPUs: s.Takes().MilliCPUs, Stored: s.Stored(), Limits: s.Said().Limits,
		Runs: len(s.Own.runs),
	}
}

// standing is how a share stands that a job counts for.
func (sh *shares) standing(s *share) taskqueue.ShareStanding {
	v := taskqueue.ShareStanding{
		Title: s.Title(), Held: s.Held(), Siblings: sh.Siblings(s), At: make(map[string]taskqueue.SiteQuota),
	}
	if s.Parent() == nil {
		v.Running, v.CPUs, v.Stored, v.Limits = s.Takes().Running, s.Takes().MilliCPUs, s.Stored(), s.Said().Limits
	} else {
		v.ShareView = sh.view(s, 0, 0)
	}
	for site := range v.Limits.Sites {
		has := s.At(site)
		v.At[site] = taskqueue.SiteQuota{Running: has.Running, MilliCPUs: has.MilliCPUs}
	}
	return v
}
