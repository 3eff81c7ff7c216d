// Package fairtree says whose turn it is of many who share, by Slurm's Fair Tree: at each level of a
// tree of groups and users those come first whose part of the weights is largest compared with their
// part of the usage; who comes last within a group comes before all users of a group that is behind it.
//
// It also counts what each has, and so says who may not have more by a quota. It is passive: time is
// an argument, and never goes back. Amounts are slot-seconds: one slot of a pilot for a second.
package fairtree

import (
	"iter"
	"strings"

	"fairway/internal/taskqueue"
)

// Tree is a tree of groups and users, of each of whom its owner keeps a U. Nobody is ever taken out.
//
// Usage is charged as expected when something is given out, and settled when that ends. It decays, for
// all alike; so it is kept in units that grow as fast as usage decays, and no order changes by time
// alone (see usage.go).
//
// Invariants:
//   - The counts of a group are the sums of those of its children.
//   - A Node is in the list active of its group exactly while something of it is ready; the list is in
//     the order of turns.
type Tree[U any] struct {
	said    taskqueue.Shares
	root    *Node[U]
	nobody  *Node[U] // that of the zero Account
	count   int      // of nodes, besides these two
	anybody bool     // somebody asked for nobody
	alone   bool     // nobody is all there is: then usage need not be counted
	bounded bool     // there are quotas

	epoch   taskqueue.Instant // when a unit of usage was a slot-second
	unsaved []*Node[U]        // users for whom something was settled since TakeUnsaved
	arrived uint64            // counts nodes of which something got ready, and nothing was
}

// Node is a group or a user.
type Node[U any] struct {
	// Own is what the owner of the tree keeps of a user.
	Own U

	name     string
	user     bool
	parent   *Node[U] // nil: it is the root
	children []*Node[U]
	said     taskqueue.Share // its weight and limits
	weights  int64           // of the children
	limits
	usage

	ready  int
	active []*Node[U] // of the children those of which something is ready, by turn
	at     int        // index in parent.active
	since  uint64     // Tree.arrived when something got ready

	isUnsaved bool // in Tree.unsaved
}

// New returns a tree of nobody.
func New[U any]() *Tree[U] {
	t := &Tree[U]{root: &Node[U]{said: taskqueue.Share{Weight: 1}}, alone: true}
	t.nobody = t.root.add("", true)
	t.root.weights = 0 // until somebody asks for nobody
	return t
}

// add makes a child of weight 1.
func (n *Node[U]) add(name string, user bool) *Node[U] {
	x := &Node[U]{name: name, user: user, parent: n, said: taskqueue.Share{Weight: 1}}
	x.rekey()
	n.children = append(n.children, x)
	n.weights++
	return x
}

func (n *Node[U]) child(name string, user bool) *Node[U] {
	for _, x := range n.children {
		if x.name == name && x.user == user {
			return x
		}
	}
	return nil
}

// Of returns the node of a user, which is made if it is new.
func (t *Tree[U]) Of(a taskqueue.Account) *Node[U] {
	if a == (taskqueue.Account{}) {
		if !t.anybody {
			t.anybody = true
			t.root.weights += t.nobody.said.Weight
		}
		return t.nobody
	}
	n := t.root
	if a.Group != "" {
		for name := range strings.SplitSeq(a.Group, "/") {
			n = t.childOf(n, name, false)
		}
	}
	return t.childOf(n, a.User, true)
}

// Known returns the node of a user, or of the nearest group of that which there is.
func (t *Tree[U]) Known(a taskqueue.Account) *Node[U] {
	n := t.root
	if a.Group != "" {
		for name := range strings.SplitSeq(a.Group, "/") {
			x := n.child(name, false)
			if x == nil {
				return n
			}
			n = x
		}
	}
	if x := n.child(a.User, true); x != nil {
		return x
	}
	return n
}

func (t *Tree[U]) childOf(n *Node[U], name string, user bool) *Node[U] {
	if x := n.child(name, user); x != nil {
		return x
	}
	t.count++
	t.alone = false
	return n.add(name, user)
}

// Len is how many groups and users there are, besides the root and nobody.
func (t *Tree[U]) Len() int { return t.count }

// Alone reports whether nobody is all there is. Then nothing need be charged or settled.
func (t *Tree[U]) Alone() bool { return t.alone }

// Bounded reports whether somebody has a quota.
func (t *Tree[U]) Bounded() bool { return t.bounded }

// Said is what Arrange was told last.
func (t *Tree[U]) Said() taskqueue.Shares { return t.said }

// All yields the root, and all groups and users, a group before those in it.
func (t *Tree[U]) All(yield func(*Node[U]) bool) { t.root.visit(yield) }

// All yields the node, and all groups and users in it, a group before those in it.
func (n *Node[U]) All() iter.Seq[*Node[U]] { return func(yield func(*Node[U]) bool) { n.visit(yield) } }

func (n *Node[U]) visit(yield func(*Node[U]) bool) bool {
	if !yield(n) {
		return false
	}
	for _, x := range n.children {
		if !x.visit(yield) {
			return false
		}
	}
	return true
}

// Up yields the node and all that it is in, up to the root.
func (n *Node[U]) Up(yield func(*Node[U]) bool) {
	for ; n != nil; n = n.parent {
		if !yield(n) {
			return
		}
	}
}

// User reports whether it is a user, and no group.
func (n *Node[U]) User() bool { return n.user }

// siblings is how many stand beside it.
func (t *Tree[U]) siblings(n *Node[U]) int {
	switch {
	case n.parent == nil:
		return 0
	case n.parent == t.root && !t.anybody:
		return len(n.parent.children) - 2 // without nobody
	}
	return len(n.parent.children) - 1
}

// Said is what Arrange was told of it: a weight of 1 without limits if nothing.
func (n *Node[U]) Said() *taskqueue.Share { return &n.said }

// Ready is of how much of it is ready.
func (n *Node[U]) Ready() int { return n.ready }

// Account names a user.
func (n *Node[U]) Account() taskqueue.Account {
	return taskqueue.Account{Group: n.parent.path(), User: n.name}
}

// path names a group from the root.
func (n *Node[U]) path() string {
	if n.parent == nil {
		return ""
	}
	if above := n.parent.path(); above != "" {
		return above + "/" + n.name
	}
	return n.name
}

// Title names a user or a group for a person.
func (n *Node[U]) Title() string {
	switch {
	case n.parent == nil:
		return "everybody"
	case n.user:
		return "user " + n.Account().String()
	}
	return "group " + n.path()
}

// Arrange gives all the weights and limits that are said, which must have been checked. Those that are
// not named have a weight of 1 and no limits. Usage stays as it is now.
func (t *Tree[U]) Arrange(now taskqueue.Instant, said taskqueue.Shares) {
	if t.epoch != 0 {
		t.beginEpoch(now) // by the half-life so far
	}
	t.said, t.alone = said, false
	for n := range t.All {
		n.said = taskqueue.Share{Weight: 1}
	}
	t.root.said.Retention = said.Retention
	t.arrangeIn(t.root, said.Of)
	t.bounded = false
	for n := range t.All {
		t.bounded = t.bounded || bounds(&n.said.Limits)
		n.weights = 0
		for _, x := range n.children {
			if x != t.nobody || t.anybody {
				n.weights += x.said.Weight
			}
		}
		n.stopped = false
		n.atSite = nil
	}
	t.reorder()
}

func (t *Tree[U]) arrangeIn(n *Node[U], list []taskqueue.Share) {
	for i := range list {
		x := t.childOf(n, list[i].Name, list[i].User)
		x.said = list[i]
		t.arrangeIn(x, list[i].Of)
	}
}
