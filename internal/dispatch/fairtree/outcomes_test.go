package fairtree

import (
	"math"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

var (
	ann  = taskqueue.Account{Group: "lab", User: "ann"}
	bob  = taskqueue.Account{Group: "lab", User: "bob"}
	carl = taskqueue.Account{User: "carl"}
	one  = Amount{Running: 1, MilliCPUs: 1000}
)

func lab(limits taskqueue.Quota, of ...taskqueue.Share) taskqueue.Shares {
	return taskqueue.Shares{Of: []taskqueue.Share{{Name: "lab", Weight: 1, Limits: limits, Of: of}}}
}

// Whoever is asked for is in the tree, with equal parts where nothing is said, and nobody counts once asked for.
func TestWhoIsInTheTree(t *testing.T) {
	tree := New[int]()
	if !tree.Alone() || tree.anybody || tree.Len() != 0 {
		t.Error("somebody is there")
	}
	a := tree.Of(ann)
	if tree.Alone() || tree.Len() != 2 || tree.Of(ann) != a || tree.Len() != 2 || a.parent.weightPart() != 1 {
		t.Errorf("there are %d; the lab has %g", tree.Len(), a.parent.weightPart())
	}
	if tree.siblings(a.parent) != 0 || tree.siblings(a) != 0 || tree.siblings(tree.root) != 0 {
		t.Error("it has siblings")
	}
	for range 2 {
		if n := tree.Of(taskqueue.Account{}); !tree.anybody || n != tree.nobody || a.parent.weightPart() != 0.5 {
			t.Errorf("beside nobody the lab has %g", a.parent.weightPart())
		}
	}
	tree.Of(bob)
	if tree.siblings(a) != 1 || tree.siblings(a.parent) != 1 {
		t.Errorf("%d beside ann, %d beside the lab", tree.siblings(a), tree.siblings(a.parent))
	}
	lab := a.parent
	for account, want := range map[taskqueue.Account]*Node[int]{
		ann: a, {Group: "lab", User: "dora"}: lab, {Group: "lab/x", User: "ann"}: lab, {Group: "x", User: "ann"}: tree.root,
	} {
		if got := tree.Known(account); got != want {
			t.Errorf("of %v %s is known", account, got.Title())
		}
	}
	seen := 0
	for n := range tree.All {
		if seen++; n == lab {
			break
		}
	}
	for range lab.All() {
		seen++
		break
	}
	if seen == 0 || tree.Len() != 3 {
		t.Error("there is nobody")
	}
}

// A tree is bounded if any quota of anybody says something.
func TestQuotasBound(t *testing.T) {
	for _, c := range []struct {
		limits taskqueue.Quota
		bounds bool
	}{
		{taskqueue.Quota{}, false}, {taskqueue.Quota{Running: 1}, true}, {taskqueue.Quota{MilliCPUs: 1}, true},
		{taskqueue.Quota{Stored: 1}, true}, {taskqueue.Quota{Sites: map[string]taskqueue.SiteQuota{"a": {Running: 1}}}, true},
	} {
		tree := New[int]()
		for range 2 {
			tree.Arrange(1, lab(c.limits, taskqueue.Share{Name: "ann", User: true, Weight: 1}))
			if tree.Bounded() != c.bounds {
				t.Errorf("%+v: %v", c.limits, tree.Bounded())
			}
		}
		if tree.Arrange(2, taskqueue.Shares{}); tree.Bounded() {
			t.Errorf("%+v bounds though it was taken back", c.limits)
		}
	}
}

// What a quota bounds at a site is counted there, and what is given back there makes room.
func TestQuotasOfSites(t *testing.T) {
	tree := New[int]()
	tree.Arrange(1, lab(taskqueue.Quota{Sites: map[string]taskqueue.SiteQuota{"a": {Running: 1}}}))
	a := tree.Of(ann)
	lab := a.parent
	tree.Charge(1, a, 1, "a", one)
	if lab.takesAt("a") != one || lab.takesAt("b") != (Amount{}) || lab.Takes() != one {
		t.Errorf("%v at a, %v at b", lab.takesAt("a"), lab.takesAt("b"))
	}
	if a.Beyond("a", one, "", Amount{}) != lab || a.Beyond("b", one, "", Amount{}) != nil ||
		a.Beyond("a", one, "a", one) != nil || a.Beyond("a", one, "b", one) != lab {
		t.Error("another amount is beyond the quota")
	}
	tree.Arrange(2, taskqueue.Shares{})
	if lab.takesAt("a") != (Amount{}) || a.GaveBack() || lab.Said().Weight != 1 || len(lab.Said().Limits.Sites) > 0 {
		t.Errorf("without a quota %v count, as %+v says", lab.takesAt("a"), lab.Said())
	}
}

func TestRoomOfUsers(t *testing.T) {
	tree := New[int]()
	a := tree.Of(ann)
	if got := a.Room(); got != math.MaxInt {
		t.Errorf("without a quota there is room for %d", got)
	}
	tree.Arrange(1, lab(taskqueue.Quota{Running: 2, Stored: 5}, taskqueue.Share{
		Name: "ann", User: true, Weight: 1, Limits: taskqueue.Quota{Running: 9},
	}))
	for want := range 4 {
		if got := a.Room(); got != max(0, 2-want) {
			t.Errorf("beside %d there is room for %d", want, got)
		}
		tree.Charge(1, a, 1, "a", one)
	}
	for range 3 {
		tree.Settle(2, a, 1, 1, 1, "a", one)
	}
	if a.Store(4); a.Room() != 1 {
		t.Errorf("below the limit there is room for %d", a.Room())
	}
	if a.Store(1); a.Room() != 0 || a.parent.Stored() != 5 {
		t.Errorf("at the limit there is room for %d", a.Room())
	}
	a.Store(-5)
	tree.Hold("why")
	if a.Room() != 0 || tree.root.held != "why" {
		t.Error("who is held has room")
	}
}

// Whose turn it is follows from weights and usage, also from what was recorded.
func TestUsageThatIsRestored(t *testing.T) {
	tree := New[int]()
	a, b, c := tree.Of(ann), tree.Of(bob), tree.Of(carl)
	if a.Precedes(a) != 0 || a.usagePart() != 0 || !math.IsInf(a.LevelFS(), 1) {
		t.Error("somebody has used something")
	}
	tree.Restore(ann, 1, 30)
	tree.Restore(carl, 1, 10)
	for _, units := range []float64{math.Inf(1), math.NaN()} {
		tree.Restore(bob, 1, units)
	}
	if a.Precedes(b) <= 0 || b.Precedes(a) >= 0 || c.Precedes(a) >= 0 {
		t.Error("who has used more takes a turn first")
	}
	if a.parent.usagePart() != 0.75 || b.usagePart() != 0 {
		t.Errorf("the lab has used %g of all, bob %g of the lab", a.parent.usagePart(), b.usagePart())
	}
	if got := tree.Ahead(1, a, c); got != 20 {
		t.Errorf("the lab is %g ahead of carl", got)
	}
	day := taskqueue.Instant(1).After(tree.HalfLife())
	if got := tree.Settled(day, a); math.Abs(got-15) > 1e-9 {
		t.Errorf("after a half-life %g count", got)
	}
	tree.Arrange(day, taskqueue.Shares{HalfLife: time.Hour, Of: []taskqueue.Share{{Name: "carl", User: true}}})
	if got := tree.Settled(day, a); math.Abs(got-15) > 1e-9 || tree.Ahead(day, a, c) != 0 || c.weightPart() != 0 {
		t.Errorf("with other shares %g count", got)
	}
	if c.LevelFS() != 0 || a.parent.Precedes(c) >= 0 {
		t.Error("who has no weight takes a turn before others")
	}
	nothing := []taskqueue.Share{{Name: "ann", User: true}, {Name: "bob", User: true}}
	tree.Arrange(day, lab(taskqueue.Quota{}, nothing...))
	if a.weightPart() != 0 {
		t.Errorf("of no weights ann has %g", a.weightPart())
	}
}
