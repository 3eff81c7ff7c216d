package fairtree

import (
	"cmp"
	"slices"
)

// GotReady counts something of a user that got ready (sign 1), or is not any more (sign -1).
func (t *Tree[U]) GotReady(user *Node[U], sign int) {
	for x := range user.Up {
		before := x.ready
		x.ready += sign
		if x.parent == nil {
			return
		}
		switch {
		case before == 0:
			t.arrived++
			x.since = t.arrived
			x.at = len(x.parent.active)
			x.parent.active = append(x.parent.active, x)
			x.reposition()
		case x.ready == 0:
			list := x.parent.active
			list = slices.Delete(list, x.at, x.at+1)
			for i := x.at; i < len(list); i++ {
				list[i].at = i
			}
			x.parent.active = list
		}
	}
}

// reposition moves a node that is active to its place among its siblings.
func (n *Node[U]) reposition() {
	if n.ready == 0 || n.parent == nil {
		return
	}
	list := n.parent.active
	for ; n.at > 0 && n.compare(list[n.at-1]) < 0; n.at-- {
		list[n.at] = list[n.at-1]
		list[n.at].at = n.at
		list[n.at-1] = n
	}
	for ; n.at < len(list)-1 && list[n.at+1].compare(n) < 0; n.at++ {
		list[n.at] = list[n.at+1]
		list[n.at].at = n.at
		list[n.at+1] = n
	}
}

// reorder brings all into the order of their turns again.
func (t *Tree[U]) reorder() {
	for n := range t.All {
		n.rekey()
	}
	for n := range t.All {
		for i := range n.active {
			n.active[i].reposition() // those before are in order
		}
	}
}

// compare is below 0 if it is the turn of the node before another one, which is a sibling, or is of a
// group tied with its own. Of ties users come before groups, and of these who got something ready first.
func (n *Node[U]) compare(o *Node[U]) int {
	byFairness := 0
	if n.parent == o.parent {
		byFairness = cmp.Compare(o.key, n.key)
	} else {
		byFairness = cmp.Compare(o.LevelFS(), n.LevelFS())
	}
	return cmp.Or(byFairness, cmp.Compare(ofUsers(o), ofUsers(n)), cmp.Compare(n.since, o.since))
}

func ofUsers[U any](n *Node[U]) int {
	if n.user {
		return 1
	}
	return 0
}

// tied reports whether two groups have the same level fair share. Their children take their turns
// together.
func (n *Node[U]) tied(o *Node[U]) bool {
	if n.parent == o.parent {
		return n.key == o.key
	}
	return n.LevelFS() == o.LevelFS()
}

// InOrder yields the users of whom something is ready by turn: the ranks of the Fair Tree. Who is
// charged meanwhile may come once more or not at all, so the caller ends it then.
func (t *Tree[U]) InOrder(yield func(*Node[U]) bool) { inOrder(t.root.active, yield) }

// inOrder yields the users among siblings, which are sorted, and in groups among them.
func inOrder[U any](list []*Node[U], yield func(*Node[U]) bool) bool {
	for i := 0; i < len(list); {
		n := list[i]
		if n.user {
			if !yield(n) {
				return false
			}
			i++
			continue
		}
		end := i + 1
		for end < len(list) && !list[end].user && list[end].tied(n) {
			end++
		}
		children := n.active
		if end > i+1 {
			children = slices.Clone(children)
			for _, o := range list[i+1 : end] {
				children = append(children, o.active...)
			}
			slices.SortStableFunc(children, (*Node[U]).compare)
		}
		if !inOrder(children, yield) {
			return false
		}
		i = end
	}
	return true
}

// Precedes compares the turns of any two users.
func (n *Node[U]) Precedes(o *Node[U]) int {
	if n == o {
		return 0
	}
	a, b := Apart(n, o)
	return a.compare(b)
}

// Apart returns the siblings that two different users are, or are in.
func Apart[U any](n, o *Node[U]) (a, b *Node[U]) {
	depth := func(n *Node[U]) (d int) {
		for range n.Up {
			d++
		}
		return d
	}
	dn, do := depth(n), depth(o)
	for ; dn > do; dn-- {
		n = n.parent
	}
	for ; do > dn; do-- {
		o = o.parent
	}
	for n.parent != o.parent {
		n, o = n.parent, o.parent
	}
	return n, o
}

// byTurn returns the children in the order of their turns, whether or not something of them is ready.
func (n *Node[U]) byTurn() []*Node[U] {
	children := slices.Clone(n.children)
	slices.SortStableFunc(children, (*Node[U]).compare)
	return children
}

// Ranks gives all users their ranks, 1 first, whether or not something of them is ready: by Slurm's
// rules, those with the same level fair share under one parent, or under groups that are tied, have one
// rank, and so has a user that is tied with a group and the first of that.
func (t *Tree[U]) Ranks() map[*Node[U]]int {
	r := ranking[U]{of: make(map[*Node[U]]int)}
	r.rank(slices.Clone(t.root.children), false)
	return r.of
}

type ranking[U any] struct {
	of   map[*Node[U]]int
	n    int // users so far
	last int // rank that was given last
}

func (r *ranking[U]) rank(siblings []*Node[U], tied bool) {
	slices.SortStableFunc(siblings, (*Node[U]).compare)
	for i := 0; i < len(siblings); {
		n := siblings[i]
		if i > 0 {
			tied = siblings[i-1].tied(n)
		}
		if n.user {
			if r.n++; !tied {
				r.last = r.n
			}
			r.of[n] = r.last
			i++
			continue
		}
		children := slices.Clone(n.children)
		for i++; i < len(siblings) && !siblings[i].user && siblings[i].tied(n); i++ {
			children = append(children, siblings[i].children...)
		}
		r.rank(children, tied)
	}
}
