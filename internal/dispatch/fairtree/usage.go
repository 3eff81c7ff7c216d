package fairtree

import (
	"cmp"
	"math"
	"time"

	"fairway/internal/taskqueue"
)

// Usage is kept in units of which 2^(age/HalfLife) are a slot-second now, where age is the time
// since Tree.epoch. So what was used before counts less and less, although no number changes.

// maxAge is how many half-lives old the epoch grows: the units are then counted anew.
const maxAge = 64

// usage is what a node has used, in units.
type usage struct {
	settled float64 // by what has ended
	charged float64 // what is under way is expected to use so much
	key     float64 // weight over usage, by which siblings are ordered
}

func (u *usage) sum() float64 { return u.settled + u.charged }

// unit is how many units a slot-second is now, for what is counted from now on.
func (t *Tree[U]) unit(now taskqueue.Instant) float64 {
	if t.epoch == 0 || math.Abs(t.age(now)) > maxAge {
		t.beginEpoch(now)
	}
	return t.scale(now)
}

// scale is how many units a slot-second is now.
func (t *Tree[U]) scale(now taskqueue.Instant) float64 {
	if t.epoch == 0 {
		return 1
	}
	return math.Exp2(t.age(now))
}

// age is that of the epoch, in half-lives.
func (t *Tree[U]) age(now taskqueue.Instant) float64 {
	return float64(now-t.epoch) / float64(t.HalfLife())
}

// HalfLife is that of usage.
func (t *Tree[U]) HalfLife() time.Duration {
	return cmp.Or(t.said.HalfLife, taskqueue.DefaultHalfLife)
}

// beginEpoch counts usage in slot-seconds of now. What was equal stays equal.
func (t *Tree[U]) beginEpoch(now taskqueue.Instant) {
	if t.epoch != 0 {
		by := math.Exp2(-t.age(now))
		for n := range t.All {
			n.settled *= by
			n.charged *= by
		}
		t.reorder()
	}
	t.epoch = now
}

func (n *Node[U]) rekey() {
	switch used := n.sum(); {
	case n.said.Weight == 0:
		n.key = 0
	case used <= 0:
		n.key = math.Inf(1)
	default:
		n.key = float64(n.said.Weight) / used
	}
}

// LevelFS is the level fair share of Slurm's Fair Tree: the part of the weights of all siblings
// over the part of their usage. It is 0 without weight, and infinite without usage. It is one
// quotient of products, which are exact for small numbers, so that groups which are tied are equal.
func (n *Node[U]) LevelFS() float64 {
	if n.key == 0 || math.IsInf(n.key, 1) {
		return n.key
	}
	return float64(n.said.Weight) * n.parent.sum() / (n.sum() * float64(n.parent.weights))
}

// weightPart is its part of the weights of all siblings.
func (n *Node[U]) weightPart() float64 {
	if n.parent.weights <= 0 {
		return 0
	}
	return float64(n.said.Weight) / float64(n.parent.weights)
}

// usagePart is its part of the usage of all siblings.
func (n *Node[U]) usagePart() float64 {
	if all := n.parent.sum(); all > 0 {
		return n.sum() / all
	}
	return 0
}

// used is how much has been used and is under way, in slot-seconds as they count now.
func (t *Tree[U]) used(now taskqueue.Instant, n *Node[U]) float64 { return n.sum() / t.scale(now) }

// Settled is what was used without what is under way: what is to be recorded, and Restored.
func (t *Tree[U]) Settled(now taskqueue.Instant, n *Node[U]) float64 {
	return n.settled / t.scale(now)
}

// Restore adds what a user had Settled at a time.
func (t *Tree[U]) Restore(a taskqueue.Account, at taskqueue.Instant, settled float64) {
	if t.epoch == 0 {
		t.epoch = at
	}
	units := settled * math.Exp2(float64(at-t.epoch)/float64(t.HalfLife()))
	if math.IsInf(units, 0) || math.IsNaN(units) {
		return // half-lives past counting lie between it and others
	}
	for n := range t.Of(a).Up {
		n.settled += units
		n.rekey()
	}
}

// Charge counts something that a user was given at a site: what it takes, and the slot-seconds that it
// is expected to use.
func (t *Tree[U]) Charge(now taskqueue.Instant, user *Node[U], expected float64, site string, takes Amount) {
	units := expected * t.unit(now)
	for n := range user.Up {
		n.charged += units
		n.take(site, takes, 1)
		n.rekey()
		n.reposition()
	}
}

// Settle ends what was charged at a time, and counts what was used instead. It reports whether
// somebody who was kept from more may have some now.
func (t *Tree[U]) Settle(
	now taskqueue.Instant, user *Node[U], at taskqueue.Instant, expected, used float64, site string, takes Amount,
) (freed bool) {
	used *= t.unit(now) // may begin a new epoch
	charge := expected * math.Exp2(float64(at-t.epoch)/float64(t.HalfLife()))
	for n := range user.Up {
		n.charged = max(0, n.charged-charge)
		n.take(site, takes, -1)
		if n.takes.Running == 0 {
			n.charged = 0
		}
		freed = n.gaveBack() || freed
		n.settled += used
		n.rekey()
		n.reposition()
	}
	if used > 0 && !user.isUnsaved && user != t.nobody {
		user.isUnsaved = true
		t.unsaved = append(t.unsaved, user)
	}
	return freed
}

// HasUnsaved reports whether TakeUnsaved returns anybody.
func (t *Tree[U]) HasUnsaved() bool { return len(t.unsaved) > 0 }

// TakeUnsaved returns the users whose usage was settled since the last call, to be recorded.
func (t *Tree[U]) TakeUnsaved() (users []*Node[U]) {
	users, t.unsaved = t.unsaved, nil
	for _, n := range users {
		n.isUnsaved = false
	}
	return users
}

// Ahead is by how many slot-seconds a user has used more than the share, relative to another one.
func (t *Tree[U]) Ahead(now taskqueue.Instant, n, of *Node[U]) float64 {
	a, b := Apart(n, of)
	if b.said.Weight == 0 {
		return 0
	}
	return (a.sum() - b.sum()*float64(a.said.Weight)/float64(b.said.Weight)) / t.scale(now)
}
