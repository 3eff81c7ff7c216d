package sched

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"fairway/lib/sched/internal/notices"
)

// A task is run as it was asked for, on the goroutine of its caller.
func TestRunIsOnTheGoroutineOfItsCaller(t *testing.T) {
	s := newTest(t, Config{Priorities: NoPriorities})
	own, inner, priority := goroutineID(), uint64(0), 0
	if err := s.Run(t.Context(), func(task *Task) error {
		inner, priority = goroutineID(), task.priority
		return nil
	}, AtPriority(3)); err != nil {
		t.Fatal(err)
	}
	if inner != own || priority != 3 {
		t.Errorf("it ran on goroutine %d, not %d, at priority %d", inner, own, priority)
	}
}

// Turns are short until one is long, and are counted from there.
func TestShortTurnsAreCounted(t *testing.T) {
	now := time.Now()
	task := &Task{short: 2, started: now.Add(-longTurn)}
	if took := task.finishTurn(now); took != longTurn || task.short != 0 {
		t.Errorf("a long turn took %v, and %d were short", took, task.short)
	}
	for n := range 2 {
		task.started = now
		if took := task.finishTurn(now.Add(longTurn - 1)); took != longTurn-1 || int(task.short) != n+1 {
			t.Errorf("a short turn took %v, and %d were short", took, task.short)
		}
	}
}

// Of equal tasks the one that came first has the better right to a slot.
func TestFirstComeFirstServed(t *testing.T) {
	a, b := bareTask(0), bareTask(0)
	a.share.entry, b.share.entry = 1, 2
	if !a.before(b, 0) || b.before(a, 0) || a.before(a, 0) {
		t.Error("they do not go by their coming")
	}
	a.share.used = 1
	if a.before(b, 0) || !b.before(a, 0) {
		t.Error("they do not go by what they have used")
	}
}

// A slot is lent once, and comes back to a task that computes again.
func TestLentSlotsComeBack(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 1, 0)
	a, b, c, queued := bareTask(0), bareTask(0), bareTask(0), bareTask(0)
	for _, task := range []*Task{a, b, c} {
		sl.start(task, 0)
	}
	if sl.stall(queued, ms) || !sl.stall(a, ms) || sl.stall(a, ms) || sl.stalled != 1 || sl.computing() != 1 {
		t.Fatalf("%d slots are lent, %d tasks compute", sl.stalled, sl.computing())
	}
	sl.unstall(queued, 2*ms)
	if sl.unstall(a, 2*ms); a.share.stalled || sl.stalled != 0 || sl.computing() != 2 {
		t.Errorf("%d slots are lent, %d tasks compute", sl.stalled, sl.computing())
	}
}

// A scheduler that is closed waits for nothing of a kind that it did not know.
func TestKindsOfAClosedScheduler(t *testing.T) {
	s := New(Config{})
	s.Close()
	h := Register(s, Kind[int, int]{Name: "late", Poll: func([]*Request[int, int]) {}})
	if _, err := h.Wait(patient(t), 1); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// bareSource is a source of nobody, whose polls and end do what is given.
func bareSource(t *testing.T, s *Scheduler, poll, free func()) *source {
	t.Helper()
	return newSource(s, hooks{
		name: "bare", poll: poll, free: free, strategy: Adaptive, everybody: func(func(*entry) bool) {},
		add: func(any, *entry) {}, remove: func(*entry) {},
	})
}

// A kind frees what it holds when nobody waits, comes or is in a callback, and once.
func TestKindsRestWhenAllIsOver(t *testing.T) {
	s, freed := newTest(t, Config{}), 0
	src := bareSource(t, s, func() {}, func() { freed++ })
	for _, c := range []struct {
		what       string
		begin, end func()
	}{
		{"somebody comes", func() { src.joining = []*entry{{}} }, func() { src.joining = nil }},
		{"somebody waits", func() { src.members.Add(1) }, func() { src.members.Add(-1) }},
		{"a callback runs", func() { src.inside.Add(1) }, func() { src.inside.Add(-1) }},
		{"it blocks", func() { src.blocked = true }, func() { src.blocked = false }},
	} {
		c.begin()
		if src.rest(); freed != 0 {
			t.Fatalf("it was freed while %s", c.what)
		}
		c.end()
	}
	src.rest()
	if src.rest(); freed != 1 {
		t.Errorf("it was freed %d times", freed)
	}
}

// Who looks whether a kind is deserted may be asked to look again.
func TestDesertedKindsAreLookedForAgain(t *testing.T) {
	src := bareSource(t, newTest(t, Config{}), func() {}, nil)
	src.lonely = true
	if src.lookForNobody(); src.lonely {
		t.Error("nobody will look any more")
	}
}

// Without experience nobody polls before a block.
func TestNobodySpinsAtFirst(t *testing.T) {
	polls := 0
	src := bareSource(t, newTest(t, Config{}), func() { polls++ }, nil)
	src.fresh = true
	if src.adapt.spin() != 0 {
		t.Skip("a first guess is to spin")
	}
	if src.spin() || polls != 0 || src.fresh {
		t.Errorf("%d polls", polls)
	}
}

// What the sources of a name have counted is told together.
func TestCountsOfKindsOfOneName(t *testing.T) {
	s := newTest(t, Config{})
	for range 2 {
		src := bareSource(t, s, func() {}, nil)
		src.stats.hits.Add(3)
		src.stats.polls.Add(4)
	}
	k := s.kinds()
	at := slices.IndexFunc(k, func(k *kindTotal) bool { return k.name == "bare" })
	if at < 0 || k[at].Found != 6 || k[at].Polls != 8 {
		t.Errorf("%+v", k)
	}
}

// Old answers go when there are too many, and of the last ones only where these alone are too many.
func TestAnswersThatAreKept(t *testing.T) {
	st := NewStatus(newTest(t, Config{}), StatusConfig[int, string]{
		Name: "st", Cache: 3, Query: func(context.Context, []int) (map[int]string, error) { return nil, nil },
	})
	begin := time.Now()
	for k, c := range []struct {
		values map[int]string
		kept   []int
	}{
		{map[int]string{1: "a", 2: "b"}, []int{1, 2}},
		{map[int]string{3: "c"}, []int{1, 2, 3}},
		{map[int]string{4: "d", 5: "e", 6: "f"}, []int{4, 5, 6}},
	} {
		st.remember(nil, c.values, begin.Add(time.Duration(k)))
		var kept []int
		for key := range st.answers {
			kept = append(kept, key)
		}
		if slices.Sort(kept); !slices.Equal(kept, c.kept) {
			t.Errorf("after %v there are %v", c.values, kept)
		}
	}
	if st.remember(nil, map[int]string{7: "", 8: "", 9: "", 10: ""}, begin.Add(9)); len(st.answers) != 3 {
		t.Errorf("%d are kept", len(st.answers))
	}
}

// A tender notes since when nobody is there, and takes one who came and went between two looks for somebody.
func TestTendersNoteWhenTheLastHasGone(t *testing.T) {
	s := new(Scheduler)
	tend := &tender{s: s}
	for k, c := range []struct {
		active   int
		admitted uint64
		quiet    int64
	}{{0, 0, 0}, {1, 1, 2}, {0, 1, 2}, {0, 2, 4}, {0, 2, 4}} {
		s.active, s.admitted = c.active, c.admitted
		if active, _ := tend.count(int64(k + 1)); active != (c.active > 0) || tend.quiet != c.quiet {
			t.Errorf("look %d: active %v, quiet since %d", k+1, active, tend.quiet)
		}
	}
}

// folders are what a notifier watches.
type folders struct {
	notices.Notifier
	watched []string
}

func (f *folders) Watch(folder string) bool { f.watched = append(f.watched, folder); return true }

func (f *folders) Unwatch(folder string) {
	f.watched = slices.DeleteFunc(f.watched, func(w string) bool { return w == folder })
}

// Folders are watched for as long as somebody waits for what is in them.
func TestFoldersAreWatchedWhileSomebodyWaits(t *testing.T) {
	f := &folders{Notifier: notices.None()}
	fs := newFileSet(f, time.Second, time.Hour)
	a, b := requestFor("/a/b"), requestFor("/x/b")
	a.init(bareSource(t, newTest(t, Config{}), func() {}, nil), a)
	b.init(a.src, b)
	fs.group(a, true)
	fs.group(b, true)
	fs.tend()
	if slices.Sort(f.watched); !slices.Contains(f.watched, "/a") || !slices.Contains(f.watched, "/x") {
		t.Fatalf("%q are watched", f.watched)
	}
	fs.group(a, false)
	if fs.tend(); slices.Contains(f.watched, "/a") || !slices.Contains(f.watched, "/x") {
		t.Errorf("%q are watched", f.watched)
	}
}
