package health

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

const judged = 4 // jobs in a row

// world is what becomes of jobs on some nodes, as a record of all that happened.
type world struct {
	book   Book[int, int]
	now    taskqueue.Instant
	nodes  []*Node[int, int]
	failed []map[int]verdict // by node, of the jobs that failed there since one succeeded
}

// Whatever happens, a node is doubted exactly while so many jobs failed there as make it so, without those that failed
// elsewhere too, or while enough of them went well elsewhere.
func TestBookAgainstRecords(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 0))
	condemnedOnce := 0
	for range 400 {
		w := &world{book: NewBook[int, int](judged, time.Minute), now: taskqueue.InstantOf(time.Unix(1000, 0))}
		w.nodes, w.failed = make([]*Node[int, int], 4), make([]map[int]verdict, 4)
		condemned := map[*Node[int, int]]bool{}
		for range 60 {
			w.now = w.now.After(time.Duration(rng.IntN(30)) * time.Second)
			at, j := rng.IntN(4), rng.IntN(12)
			n := w.nodes[at]
			switch rng.IntN(8) {
			case 0: // a job succeeds on the node itself
				if n != nil && !n.condemned {
					w.book.Trust(n)
					w.nodes[at], w.failed[at] = nil, nil
				}
			case 1: // it succeeds elsewhere
				for _, x := range w.book.WentWell(j) {
					condemned[x] = true
					condemnedOnce++
				}
				for i := range w.failed {
					if v, ok := w.failed[i][j]; ok && v == open {
						w.failed[i][j] = ofNode
					}
				}
			case 2:
				w.book.Acquit(func(o int) bool { return o == j })
				for i := range w.failed {
					if v, ok := w.failed[i][j]; ok && v == open {
						w.failed[i][j] = ofTheJob
					}
				}
			default:
				if n == nil {
					n, _ = w.book.Doubt(fmt.Sprint("n", at))
					w.nodes[at], w.failed[at] = n, map[int]verdict{}
				}
				w.book.Fail(n, j, "exit code 1", w.now)
				w.failed[at][j] = open
			}
			for i, n := range w.nodes {
				if n == nil {
					continue
				}
				possibly := len(w.failed[i])
				for _, v := range w.failed[i] {
					if v == ofTheJob {
						possibly--
					}
				}
				if got, want := w.book.IsDoubted(n), condemned[n] || possibly >= judged; got != want {
					t.Fatalf("FAIRWAY_SEED=%d: node %d with %v is doubted: %v", first, i, w.failed[i], got)
				}
				blamed := slices.Sorted(maps.Keys(maps.Collect(n.Blamed())))
				for _, j := range blamed {
					if w.failed[i][j] == ofTheJob {
						t.Fatalf("FAIRWAY_SEED=%d: node %d is blamed for job %d", first, i, j)
					}
				}
				if len(blamed) != possibly || w.book.Of(n.Name) != n {
					t.Fatalf("FAIRWAY_SEED=%d: node %d is blamed for %v of %v", first, i, blamed, w.failed[i])
				}
			}
		}
	}
	if condemnedOnce == 0 {
		t.Errorf("FAIRWAY_SEED=%d: no node was ever condemned", first)
	}
}

// A node that is doubted is tried with one attempt after a pause that doubles up to an hour, and gets no other while
// that has not ended.
func TestTrials(t *testing.T) {
	b := NewBook[int, int](1, time.Minute)
	now := taskqueue.InstantOf(time.Unix(1000, 0))
	never := func() bool { return false }
	n, oldest := b.Doubt("n")
	if oldest != nil || b.Withholds(n, now, never) {
		t.Fatal("a node of which nothing is known gets nothing")
	}
	b.Fail(n, 1, "exit code 1", now)
	for trial := 1; trial <= 9; trial++ {
		pause := min(time.Minute<<(trial-1), time.Hour)
		if !b.Postpone(n, now) || b.Postpone(n, now) || n.TryAt != now.After(pause) {
			t.Fatalf("trial %d comes after %v, not %v", trial, time.Duration(n.TryAt-now), pause)
		}
		if !b.Withholds(n, now, never) {
			t.Fatal("it gets jobs before its pause is over")
		}
		now = n.TryAt
		if b.Withholds(n, now, never) {
			t.Fatal("it is not tried")
		}
		b.Give(n, 10, now)
		b.Give(n, 11, now)
		if !n.Tries(10) || n.Tries(11) || !b.Withholds(n, now, never) {
			t.Fatal("it is tried with more than one")
		}
		b.End(n, 11)
		b.End(n, 10)
		if b.Withholds(n, now, never) {
			t.Fatal("when that has ended it is not tried with the next one")
		}
	}
}

// A node on which all fails gets fewer the more has failed, while there are better ones.
func TestCaution(t *testing.T) {
	b := NewBook[int, int](judged, time.Minute)
	now := taskqueue.InstantOf(time.Unix(1000, 0))
	n, _ := b.Doubt("n")
	for failed := 1; failed < judged; failed++ {
		b.Fail(n, failed, "exit code 1", now)
		for given := range judged - failed {
			if b.IsCautious(n, now) {
				t.Fatalf("with %d failures it may have no more than %d", failed, given)
			}
			b.Give(n, given, now)
		}
		if !b.IsCautious(n, now) || !b.Withholds(n, now, func() bool { return false }) ||
			b.Withholds(n, now, func() bool { return true }) || b.IsCautious(n, now.After(time.Minute)) {
			t.Fatalf("with %d failures it may have %d, and more only where no other is better, or after a while", failed,
				judged-failed)
		}
		for given := range judged - failed {
			b.End(n, given)
		}
	}
}

// Who failed on a node that is in doubt is told of first, and what is told of the node follows what is known.
func TestWhatIsKnownOfANode(t *testing.T) {
	b := NewBook[int, int](judged, time.Minute)
	now := taskqueue.InstantOf(time.Unix(1000, 0))
	n, _ := b.Doubt("n")
	for j := range judged {
		b.Fail(n, j, fmt.Sprint("exit code ", j), now)
		if alone := j == 0; b.FailedElsewhere(0, "other") != alone || b.FailedElsewhere(j+1, "other") {
			t.Errorf("of %d jobs that failed there the first is to blame: %v", j+1, !alone)
		}
	}
	b.Change(n)
	if !b.HasChanged() || b.TakeChanged() != n || b.HasChanged() {
		t.Error("it is looked at once after a change")
	}
	if list := slices.Collect(b.Suspects(3)); !slices.Equal(list, []int{0, 1, 2}) {
		t.Errorf("suspects are %v", list)
	}
	b.Postpone(n, now)
	now = n.TryAt
	if doubt, noMore, trust := b.Review(n, now); !doubt || noMore || trust {
		t.Error(doubt, noMore, trust)
	}
	n.Told = true
	want := "the last 4 jobs there failed, the last with exit code 3; it gets no more before they have ended elsewhere"
	if why := b.Why(n, 0); !strings.Contains(why, want) {
		t.Error(why)
	}
	if b.FailedElsewhere(2, "other") || b.FailedElsewhere(2, "n") {
		t.Error("a job is to blame that failed on a node where many did")
	}
	b.Acquit(func(int) bool { return true })
	if doubt, noMore, trust := b.Review(n, now); doubt || !noMore || !trust {
		t.Error(doubt, noMore, trust)
	}
	b.Forget(func(int) bool { return true })
	if !b.Trust(n) || b.Trust(n) || b.Of("n") != nil || len(b.Doubted()) != 0 {
		t.Error("it is not trusted, once")
	}
	for i := range maxDoubted + 1 {
		n, oldest := b.Doubt(fmt.Sprint(i))
		if full := i == maxDoubted; full != (oldest != nil) || full && (oldest.Name != "0" || n == oldest) {
			t.Fatalf("node %d takes the place of %+v", i, oldest)
		}
	}
}

// Failures that say something of the node or of the job are told from others.
func TestOfNodeOrJob(t *testing.T) {
	for o, want := range map[taskqueue.Outcome]bool{
		taskqueue.Exited: true, taskqueue.OutOfDisk: true, taskqueue.StageInFailed: true, taskqueue.OutOfMemory: false,
		taskqueue.Lost: false, taskqueue.InputChanged: false, taskqueue.Succeeded: false,
	} {
		if OfNodeOrJob(o) != want {
			t.Errorf("%v: %v", o, !want)
		}
	}
}

// Of a node the last jobs are known that failed there, and how often each did.
func TestFailuresOfANodeAreBounded(t *testing.T) {
	b := NewBook[int, int](judged, time.Minute)
	h, _ := b.Doubt("n")
	b.Fail(h, 0, "first", 0)
	h.failed[0].found = ofTheJob
	b.Fail(h, 0, "second", 0)
	if f := h.failed[0]; f.times != 2 || f.what != "second" || f.found != open {
		t.Errorf("after two failures of a job: %+v", f)
	}
	for i := range maxFailures {
		b.Fail(h, i+1, "once", 0)
	}
	if len(h.failed) != maxFailures || h.failed[0].job != 1 || h.failed[maxFailures-1].job != maxFailures {
		t.Errorf("%d failures are known", len(h.failed))
	}
	for i := range h.failed {
		if h.failed[i].times != 1 {
			t.Errorf("failure %d is known %d times", i, h.failed[i].times)
		}
	}
}

// A job is to blame that has failed on two nodes of which each has done well otherwise.
func TestJobsThatFailElsewhere(t *testing.T) {
	type node struct {
		name      string
		fails     bool // the job
		possibly  int
		condemned bool
	}
	for name, c := range map[string]struct {
		nodes []node
		want  bool
	}{
		"nowhere":                           {nil, false},
		"here alone":                        {[]node{{"here", true, 1, false}}, false},
		"on another node":                   {[]node{{"here", true, 1, false}, {"there", true, 1, false}}, true},
		"where others fail too":             {[]node{{"here", true, 1, false}, {"there", true, 2, false}}, false},
		"here, where others fail too":       {[]node{{"here", true, 2, false}, {"there", true, 1, false}}, false},
		"on a node that is condemned":       {[]node{{"here", true, 1, false}, {"there", true, 1, true}}, false},
		"another job on another node":       {[]node{{"here", true, 1, false}, {"there", false, 1, false}}, false},
		"with nothing known of this node":   {[]node{{"there", true, 1, false}}, true},
		"on one of two nodes that are well": {[]node{{"there", true, 2, false}, {"other", true, 0, false}}, true},
	} {
		const j, another = 1, 2
		b := NewBook[int, int](judged, time.Minute)
		for _, n := range c.nodes {
			h := &Node[int, int]{Name: n.name, possibly: n.possibly, condemned: n.condemned}
			if h.failed = []failure[int]{{job: another}}; n.fails {
				h.failed = append(h.failed, failure[int]{job: j})
			}
			b.doubted = append(b.doubted, h)
		}
		if got := b.FailedElsewhere(j, "here"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
