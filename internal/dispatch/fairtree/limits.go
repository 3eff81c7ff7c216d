package fairtree

import (
	"math"

	"fairway/internal/taskqueue"
)

// Amount is what quotas bound.
type Amount struct {
	Running   int
	MilliCPUs int64
}

func (a Amount) plus(b Amount, sign int) Amount {
	return Amount{a.Running + sign*b.Running, a.MilliCPUs + int64(sign)*b.MilliCPUs}
}

func (a Amount) exceeds(running int, cpus int64) bool {
	return running > 0 && a.Running > running || cpus > 0 && a.MilliCPUs > cpus
}

// limits is what a node has of what its quota bounds.
type limits struct {
	takes   Amount
	atSite  map[string]*Amount // of these; only of one with a quota for sites
	stored  int64              // bytes
	kept    int64              // of a user: bytes of stored that SetKept said
	held    string             // why it gets nothing more
	stopped bool               // it was kept from more since it gave something back
}

// Takes is what it has now.
func (n *Node[U]) Takes() Amount { return n.takes }

// takesAt is what it has now at a site, where a quota bounds that.
func (n *Node[U]) takesAt(site string) Amount {
	if t := n.atSite[site]; t != nil {
		return *t
	}
	return Amount{}
}

// Stored is how many bytes it has stored.
func (n *Node[U]) Stored() int64 { return n.stored }

// Kept is how many bytes of a user SetKept said.
func (n *Node[U]) Kept() int64 { return n.kept }

func (n *Node[U]) take(site string, takes Amount, sign int) {
	n.takes = n.takes.plus(takes, sign)
	if len(n.said.Limits.Sites) == 0 && n.atSite == nil {
		return
	}
	t := n.atSite[site]
	if t == nil {
		if n.atSite == nil {
			n.atSite = make(map[string]*Amount)
		}
		t = &Amount{}
		n.atSite[site] = t
	}
	*t = t.plus(takes, sign)
}

func bounds(q *taskqueue.Quota) bool {
	return q.Running != 0 || q.MilliCPUs != 0 || q.Stored != 0 || len(q.Sites) != 0
}

// Beyond returns the user or the nearest group that may not have so much more at a site; nil if all may.
// What is given back for it at from does not count. Who may not is told by Settle and others when it may.
func (n *Node[U]) Beyond(site string, more Amount, from string, back Amount) *Node[U] {
	for x := range n.Up {
		if x.held != "" || bounds(&x.said.Limits) && x.wouldExceed(site, more, from, back) {
			x.stopped = true
			return x
		}
	}
	return nil
}

func (n *Node[U]) wouldExceed(site string, more Amount, from string, back Amount) bool {
	all, here := n.takes.plus(more, 1).plus(back, -1), more
	if t := n.atSite[site]; t != nil {
		here = here.plus(*t, 1)
	}
	if from == site {
		here = here.plus(back, -1)
	}
	q := &n.said.Limits
	return all.exceeds(q.Running, q.MilliCPUs) || here.exceeds(q.Sites[site].Running, q.Sites[site].MilliCPUs) ||
		q.Stored > 0 && n.stored >= q.Stored
}

// Room is how many more of whatever runs a user may have.
func (n *Node[U]) Room() int {
	room := math.MaxInt
	for x := range n.Up {
		if q := &x.said.Limits; x.held != "" || q.Stored > 0 && x.stored >= q.Stored {
			return 0
		} else if q.Running > 0 {
			room = min(room, max(0, q.Running-x.takes.Running))
		}
	}
	return room
}

// Store counts bytes that a user has stored more, or less.
func (n *Node[U]) Store(more int64) {
	for x := range n.Up {
		x.stored += more
	}
}

// SetKept says how many bytes of a user are stored that no Store counts, instead of those before.
func (n *Node[U]) SetKept(bytes int64) {
	n.Store(bytes - n.kept)
	n.kept = bytes
}

// Hold has nobody get more, until it is called with an empty why, which is for a person. It reports
// whether somebody may have some now who was kept from it.
func (t *Tree[U]) Hold(why string) (freed bool) {
	t.root.held = why
	return why == "" && t.root.gaveBack()
}

// GaveBack reports whether the user or a group of that was kept from more, which may have some now.
func (n *Node[U]) GaveBack() (freed bool) {
	for x := range n.Up {
		freed = x.gaveBack() || freed
	}
	return freed
}

func (n *Node[U]) gaveBack() bool {
	stopped := n.stopped
	n.stopped = false
	return stopped
}
