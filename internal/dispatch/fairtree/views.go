package fairtree

import (
	"fairway/internal/dispatch/estimate"
	"fairway/internal/taskqueue"
)

// Views returns all groups and users: those of a group after it, by their level fair share. runs is how many runs
// one has. What has no account is that of the user "", who is left out while there is nothing.
func (t *Tree[U]) Views(now taskqueue.Instant, runs func(*Node[U]) int) (list []taskqueue.ShareView) {
	ranks := t.Ranks()
	var below func(*Node[U], int)
	below = func(n *Node[U], depth int) {
		for _, x := range n.byTurn() {
			if x == t.nobody && !t.anybody {
				continue
			}
			v := t.view(now, x)
			v.Depth, v.Rank, v.Runs = depth, ranks[x], runs(x)
			list = append(list, v)
			below(x, depth+1)
		}
	}
	below(t.root, 0)
	return list
}

func (t *Tree[U]) view(now taskqueue.Instant, n *Node[U]) taskqueue.ShareView {
	return taskqueue.ShareView{
		Name: n.name, User: n.user, Weight: n.said.Weight, Share: n.weightPart(),
		Usage: estimate.Seconds(t.used(now, n)), Used: n.usagePart(), LevelFS: n.LevelFS(),
		Ready: n.ready, Running: n.takes.Running, CPUs: n.takes.MilliCPUs, Stored: n.stored, Limits: n.said.Limits,
	}
}

// Standing is how a node stands for which something counts.
func (t *Tree[U]) Standing(now taskqueue.Instant, n *Node[U]) taskqueue.ShareStanding {
	v := taskqueue.ShareStanding{
		Title: n.Title(), Held: n.held, Siblings: t.siblings(n), At: make(map[string]taskqueue.SiteQuota),
	}
	if n.parent == nil {
		v.Running, v.CPUs, v.Stored, v.Limits = n.takes.Running, n.takes.MilliCPUs, n.stored, n.said.Limits
	} else {
		v.ShareView = t.view(now, n)
	}
	for site := range v.Limits.Sites {
		has := n.takesAt(site)
		v.At[site] = taskqueue.SiteQuota{Running: has.Running, MilliCPUs: has.MilliCPUs}
	}
	return v
}

// Queued is how many jobs of a user, or of the nearest group of that with a limit for it, wait, and how many may: 0
// where that is not bounded. of counts those of one user.
func (t *Tree[U]) Queued(a taskqueue.Account, of func(*Node[U]) int) (title string, queued, most int) {
	for n := range t.Known(a).Up {
		may := n.said.Limits.Queued
		if may == 0 {
			continue
		}
		all := 0
		for x := range n.All() {
			all += of(x)
		}
		if most == 0 || may-all < most-queued {
			title, queued, most = n.Title(), all, may
		}
	}
	return title, queued, most
}
