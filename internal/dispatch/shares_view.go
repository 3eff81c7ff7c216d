package dispatch

import (
	"slices"
	"time"
)

// ShareView is what there is to say of a group or a user.
type ShareView struct {
	Name   string
	User   bool // else it is a group
	Depth  int  // 0: at the root
	Weight int64
	Share  float64       // part of the weights of all siblings
	Usage  time.Duration // slot-seconds, as they count now
	Used   float64       // part of the usage of all siblings
	// LevelFS is Share over Used: above 1 it has got less than its share. It is infinite
	// where nothing was used.
	LevelFS float64
	Rank    int // of a user: 1 is first; users with equal rights have one rank

	Ready   int   // jobs
	Running int   // attempts that were given to pilots
	CPUs    int64 // thousandths of processors that they take
	Stored  int64 // bytes of outputs of runs that were not retired
	Limits  Quota
	Runs    int // of a user, that were not retired
}

// HalfLife is that of usage.
func (c *Core) HalfLife() time.Duration { return c.shares.halfLife() }

// LimitView is what is in use of a resource that Shares.Limits bound.
type LimitView struct {
	Name string
	Most int64
	Used int64
}

// Limits returns those over all runs, by name.
func (c *Core) Limits() (list []LimitView) {
	for _, name := range sortedKeys(c.shares.pools) {
		p := c.shares.pools[name]
		list = append(list, LimitView{p.name, p.most, p.used})
	}
	return list
}

// Queued is how many jobs of a user, or of the nearest group of that with a limit for it, are waiting or
// ready in runs that go on, and how many may be: 0 where that is not bounded.
func (c *Core) Queued(a Account) (of string, queued, most int) {
	for s := range c.shares.known(a).up {
		if s.quota.Queued == 0 {
			continue
		}
		if n := s.queued(); most == 0 || s.quota.Queued-n < most-queued {
			of, queued, most = s.title(), n, s.quota.Queued
		}
	}
	return of, queued, most
}

func (s *share) queued() (n int) {
	for x := range s.all {
		for _, r := range x.runs {
			if r.halted() { // nothing of it waits for a pilot
				continue
			}
			n += r.totals.ByState[Waiting] + r.totals.ByState[Ready]
		}
	}
	return n
}

// title names a user or a group for a person.
func (s *share) title() string {
	switch {
	case s.parent == nil:
		return "everybody"
	case s.user:
		return "user " + s.account().String()
	}
	return "group " + s.path()
}

// SharesSaid returns what the last SetShares said.
func (c *Core) SharesSaid() Shares { return c.shares.said }

// Shares returns all groups and users: those of a group after it, by their level fair share.
// Runs without an account are those of the user "".
func (c *Core) Shares() []ShareView {
	ranks := c.shares.ranks()
	var list []ShareView
	c.shares.root.view(&list, -1, c.shares.scale(), ranks)
	if !c.shares.anybody {
		list = slices.DeleteFunc(list, func(v ShareView) bool { return v.User && v.Name == "" })
	}
	return list
}

func (s *share) view(list *[]ShareView, depth int, unit float64, ranks map[*share]int) {
	if s.parent != nil {
		*list = append(*list, s.viewed(depth, unit, ranks[s]))
	}
	children := slices.Clone(s.children)
	slices.SortStableFunc(children, (*share).compare)
	for _, x := range children {
		x.view(list, depth+1, unit, ranks)
	}
}

func (s *share) viewed(depth int, unit float64, rank int) ShareView {
	v := ShareView{
		Name: s.name, User: s.user, Depth: depth, Weight: s.weight, Usage: seconds(s.usage() / unit), LevelFS: s.levelFS(),
		Rank: rank, Ready: s.ready, Running: s.attempts, CPUs: s.cpus, Stored: s.stored, Limits: s.quota, Runs: len(s.runs),
	}
	if s.parent.weights > 0 {
		v.Share = float64(s.weight) / float64(s.parent.weights)
	}
	if all := s.parent.usage(); all > 0 {
		v.Used = s.usage() / all
	}
	return v
}

// ranks gives all users their ranks, whether or not they have ready jobs: by Slurm's rules, those
// with the same level fair share under one parent, or under groups that are tied, have one rank,
// and so has a user that is tied with a group and the first of that.
func (sh *shares) ranks() map[*share]int {
	r := ranking{of: make(map[*share]int)}
	r.rank(slices.Clone(sh.root.children), false)
	return r.of
}

type ranking struct {
	of   map[*share]int
	n    int // users so far
	last int // rank that was given last
}

func (r *ranking) rank(siblings []*share, tied bool) {
	slices.SortStableFunc(siblings, (*share).compare)
	for i := 0; i < len(siblings); {
		s := siblings[i]
		if i > 0 {
			tied = siblings[i-1].tied(s)
		}
		if s.user {
			if r.n++; !tied {
				r.last = r.n
			}
			r.of[s] = r.last
			i++
			continue
		}
		children := slices.Clone(s.children)
		for i++; i < len(siblings) && !siblings[i].user && siblings[i].tied(s); i++ {
			children = append(children, siblings[i].children...)
		}
		r.rank(children, tied)
	}
}
