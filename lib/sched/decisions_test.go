package sched

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairway/lib/sched/internal/notices"
	"fairway/lib/sched/internal/processors"
)

// What is decided in small steps is tried here step by step: from outside a wrong one often only costs time.

func TestAllowanceRests(t *testing.T) {
	a := allowance{share: 0.5, credit: -1, resting: true}
	if a.granted(0, false) {
		t.Error("it is granted in debt")
	}
	a.credit = pollingRest - 1
	if a.granted(0, false) {
		t.Error("it is granted before the rest is over")
	}
	a.credit = pollingRest
	if !a.granted(0, false) {
		t.Error("it is not granted after the rest")
	}
	if a.granted(int64(2*pollingRest)+10, true); a.credit >= 0 || !a.resting {
		t.Errorf("polling costs its time, less the share: %+v", a)
	}
	if all := (allowance{share: 1}); !all.granted(0, false) {
		t.Error("it rests without a debt")
	}
	none := allowance{credit: pollingCredit}
	if none.granted(0, false) {
		t.Error("nothing is granted of nothing")
	}
}

// The clock is looked at about every lookEvery, however much lies between two checkpoints.
func TestCheckpointsLookAtTheClockNowAndThen(t *testing.T) {
	start := time.Now()
	task := &Task{stride: 8, looked: start}
	for _, c := range []struct {
		took   time.Duration
		stride int
	}{
		{lookEvery/2 - 1, 16}, {lookEvery / 2, 16}, {2 * lookEvery, 16}, {2*lookEvery + 1, 4}, {3 * lookEvery, 1},
		{3 * lookEvery, 1}, {0, 2},
	} {
		start = start.Add(c.took)
		task.pace(start)
		if int(task.stride) != c.stride || int(task.credit) != c.stride {
			t.Errorf("after %v the next look is after %d checkpoints, credit %d, not %d", c.took, task.stride, task.credit,
				c.stride)
		}
	}
	task.stride = maxStride
	if task.pace(start); task.stride != maxStride {
		t.Errorf("after %d", task.stride)
	}
	s := newTest(t, Config{Slots: 1})
	if first := s.newTask(t.Context(), nil); first.stride != 1 {
		t.Error("a task that has just begun does not look at once")
	}
	err := s.Run(t.Context(), func(task *Task) error {
		for task.stride < 4 {
			if t.Context().Err() != nil {
				return t.Context().Err()
			}
			task.marks.Store(markYield << 1) // there may be something to do
			for range 100 {
				task.attend()
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTriggersInVainAreLearned(t *testing.T) {
	a := adaptation{vain: 0.5}
	a.triggered(true)
	if want := 0.5 - 0.5/learned; a.vain != want {
		t.Errorf("after an event %v are in vain, not %v", a.vain, want)
	}
	a.vain = 0.5
	a.triggered(false)
	if want := 0.5 + 0.5/learned; a.vain != want {
		t.Errorf("after none %v are in vain, not %v", a.vain, want)
	}
}

func TestLevelsOfPrioritiesAreInOrder(t *testing.T) {
	sl := &slots{}
	for _, p := range []int{0, 2, -1, 2, 0, 1} {
		if got := sl.levelOf(p).priority; got != p {
			t.Errorf("the level of %d is %d", p, got)
		}
	}
	if len(sl.levels) != 4 {
		t.Fatalf("%d levels", len(sl.levels))
	}
	for i, want := range []int{2, 1, 0, -1} {
		if sl.levels[i].priority != want {
			t.Errorf("level %d is %d", i, sl.levels[i].priority)
		}
	}
}

// The floor of a level is what its tasks have used that run or wait; what those of others, or those that do not
// compute, have used does not count.
func TestFloorOfALevel(t *testing.T) {
	for _, c := range []struct {
		name    string
		other   int
		stalled bool
		floor   time.Duration
	}{
		{"one that runs", 0, false, 3}, {"one that does not compute", 0, true, 5}, {"one of another level", 1, false, 5},
	} {
		sl := &slots{}
		sl.resize(2, 1, 0)
		a, b := bareTask(0), bareTask(c.other)
		l := sl.levelOf(0)
		a.share.level, b.share.level = l, sl.levelOf(c.other)
		a.share.used, b.share.used, b.share.stalled = 5, 3, c.stalled
		sl.running = []*Task{a, b}
		if sl.raise(l, 0); l.floor != c.floor {
			t.Errorf("%s: the floor is %d, not %d", c.name, l.floor, c.floor)
		}
	}
}

// Those that have used the same take their turns in the order in which they came.
func TestEqualTasksTakeTheirTurnsInOrder(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 0, 0)
	holder := bareTask(0)
	sl.start(holder, 0)
	tasks := make([]*Task, 5)
	for i := range tasks {
		tasks[i] = bareTask(0)
		if sl.start(tasks[i], 0) {
			t.Fatal("it has a slot at once")
		}
	}
	for i := 1; i < len(tasks); i++ {
		if a, b := tasks[i-1].share.entry, tasks[i].share.entry; a >= b {
			t.Errorf("the entries are %d and %d", a, b)
		}
	}
}

// Where all slots are held for long, a task that has been woken before runs over them at the next look.
func TestWokenTasksAreRoused(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 1, 0)
	holder, woken, first := bareTask(0), bareTask(0), bareTask(0)
	sl.start(woken, 0)
	sl.pause(woken, 0, allOfIt)
	sl.start(holder, 0)
	sl.start(first, 0) // waits for a slot, and goes before
	first.share.level.queue[0].share.used = -time.Hour
	if sl.wake(woken, ms) {
		t.Skip("it runs at once")
	}
	later := int64(3 * Quantum)
	if sl.rouse(later); !woken.wasGranted() && !first.wasGranted() {
		t.Error("nobody runs over the slots")
	}
}

func TestPoolPassesItsThreadsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{free: 1}
		if !p.seize() || p.seize() {
			t.Fatal("there is one thread")
		}
		ran := false
		if !p.run(t.Context(), true, func() { ran = true }) || p.run(t.Context(), false, func() {}) {
			t.Fatal("the queue takes what must run, and nothing else")
		}
		p.release()
		if synctest.Wait(); !ran || p.free != 1 {
			t.Errorf("ran: %v, free: %d", ran, p.free)
		}
		leave, closed := make(chan struct{}), false
		p.run(t.Context(), false, func() { <-leave })
		go func() { p.close(); closed = true }()
		if synctest.Wait(); closed {
			t.Error("it is closed before what runs has ended")
		}
		close(leave)
		if synctest.Wait(); !closed {
			t.Error("it is not closed")
		}
	})
}

func TestFilesAreTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	there, err := StatFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if none := (FileState{}); none.same(there) || there.same(none) || !none.same(none) || !there.same(there) {
		t.Error("a file that is there is not one that is not")
	}
}

func requestFor(path string) *fileRequest { return &fileRequest{Value: Appears(path)} }

// A look is due when something is not watched, or everything is looked at; else a notice is waited for.
func TestPatienceOfFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFileSet(notices.None(), time.Second, time.Hour)
		if got := fs.patience(0); got != -1 {
			t.Errorf("nobody waits: %v", got)
		}
		r := requestFor("/a/b")
		fs.group(r, true)
		if got := fs.patience(0); got != 0 {
			t.Errorf("a new request: %v", got)
		}
		fs.news()
		fs.next = time.Now().Add(time.Minute)
		f := fs.folders["/a"]
		if got := fs.patience(0); got != time.Minute {
			t.Errorf("not watched: %v", got)
		}
		f.watched = true
		if got := fs.patience(0); got != time.Hour {
			t.Errorf("watched: %v", got)
		}
		if got := fs.patience(time.Second); got != time.Second {
			t.Errorf("with a limit: %v", got)
		}
		fs.linked[r] = true
		if got := fs.patience(0); got != time.Minute {
			t.Errorf("a link: %v", got)
		}
	})
}

func TestNoticesConcern(t *testing.T) {
	fs := newFileSet(notices.None(), time.Second, time.Hour)
	b, c, elsewhere, itself := requestFor("/a/b"), requestFor("/a/c"), requestFor("/x/b"), requestFor("/a")
	for _, r := range []*fileRequest{b, c, elsewhere, itself} {
		fs.group(r, true)
	}
	fs.news()
	fs.folders["/a"].itself[itself] = true
	fs.folders["/a"].watched, fs.folders["/x"].watched = true, true
	names := func(found []*fileRequest) map[*fileRequest]bool {
		set := map[*fileRequest]bool{}
		for _, r := range found {
			set[r] = true
		}
		return set
	}
	for _, n := range []struct {
		folder, name string
		want         []*fileRequest
		watched      bool
	}{
		{"/a", "b", []*fileRequest{b, itself}, true},
		{"/a", "d", []*fileRequest{itself}, true},
		{"", "", []*fileRequest{b, c, elsewhere, itself}, true},
		{"/a", "", []*fileRequest{b, c, itself}, false},
	} {
		got := names(fs.concerned(n.folder, n.name))
		for _, r := range n.want {
			if !got[r] {
				t.Errorf("%q %q does not concern %s", n.folder, n.name, r.Value.Path)
			}
			delete(got, r)
		}
		if len(got) > 0 || fs.folders["/a"].watched != n.watched || !fs.folders["/x"].watched {
			t.Errorf("%q %q: %d more, watched %v", n.folder, n.name, len(got), fs.folders["/a"].watched)
		}
	}
}

func TestFilesAreLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newFileSet(notices.None(), time.Second, time.Hour)
		watched, bare, own := requestFor("/a/b"), requestFor("/x/b"), requestFor("/x")
		fs.group(watched, true)
		fs.group(bare, true)
		fs.folders["/a"].watched = true
		fs.folders["/x"].itself[own] = true
		fs.news()
		fs.next = time.Now()
		if fs.renew(); fs.fresh[watched] || !fs.fresh[bare] || !fs.fresh[own] || fs.folders["/x"].tried {
			t.Errorf("by the interval: %v", fs.fresh)
		}
		fs.news()
		if fs.renew(); len(fs.fresh) > 0 {
			t.Errorf("before the interval: %v", fs.fresh)
		}
		<-time.After(time.Hour)
		if fs.renew(); !fs.fresh[watched] || !fs.fresh[bare] {
			t.Errorf("by the recheck: %v", fs.fresh)
		}
	})
}

// What is not due is not polled at a checkpoint.
func TestOnlyWhatIsDueIsPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		var polls atomic.Int64
		h := Register(s, Kind[int, int]{
			Name: "rare", Interval: time.Hour, Eager: -1, Poll: func([]*Request[int, int]) { polls.Add(1) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := h.Wait(ctx, 1); done <- err }()
		synctest.Wait()
		before := polls.Load()
		for range 3 {
			s.poller.next.Store(0)
			s.poller.pollDue(s.now())
		}
		if n := polls.Load() - before; n != 0 {
			t.Errorf("polled %d times within an hour", n)
		}
		s.poller.next.Store(0)
		s.poller.pollDue(s.now() + int64(2*time.Hour))
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// An event that is there before its request joins a block is found at once, though it ends no block.
func TestEventBeforeARequestThatJoinsABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		leave := make(chan struct{}, 1)
		h := Register(s, Kind[int, int]{
			Name: "joined", Concurrent: true,
			Poll: func(waiting []*Request[int, int]) {
				for _, r := range waiting {
					if r.Value == 2 {
						r.Done(2, nil)
					}
				}
			},
			Arm: func() bool { return true }, Block: func(time.Duration) { <-leave },
			Unblock: func() {
				select {
				case leave <- struct{}{}:
				default:
				}
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan struct{})
		go func() { defer close(first); _, _ = h.Wait(ctx, 1) }()
		synctest.Wait()
		if got, err := h.Wait(t.Context(), 2); got != 2 || err != nil {
			t.Error(got, err)
		}
		cancel()
		<-first
	})
}

// A kind that has broken is forgotten when it is closed.
func TestBrokenKindsAreForgotten(t *testing.T) {
	s := newTest(t, Config{})
	known := len(s.sources)
	h := Register(s, Kind[int, int]{Name: "broken", Poll: func([]*Request[int, int]) { panic("broken") }})
	if _, err := h.Wait(patient(t), 1); err == nil {
		t.Fatal("it does not fail")
	}
	<-h.src.rested
	if len(s.sources) != known+1 {
		t.Fatal("it is forgotten before it is closed")
	}
	if h.Close(); len(s.sources) != known {
		t.Error("it is not forgotten")
	}
}

// How long waiters wait for a processor, and compute after an event, is counted for their kind.
func TestTurnsAfterEventsAreCounted(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	h := Register(s, Kind[int, int]{
		Name: "counted", Poll: func(waiting []*Request[int, int]) { waiting[0].Done(1, nil) },
	})
	err := s.Run(patient(t), func(task *Task) error {
		for range 3 {
			if _, err := h.Wait(task.Context(), 1); err != nil {
				return err
			}
		}
		return nil
	})
	st := h.src.stats
	if queued, ran := st.queueing.total(), st.running.total(); err != nil || queued != 3 || ran < 2 {
		t.Errorf("%d queued, %d ran, %v", queued, ran, err)
	}
}

func TestStatusHasDefaults(t *testing.T) {
	s := newTest(t, Config{})
	query := func(context.Context, []int) (map[int]int, error) { return nil, nil }
	c := NewStatus(s, StatusConfig[int, int]{Name: "defaults", Query: query}).config
	if c.Every != DefaultStatusEvery || c.Batch != DefaultStatusBatch || c.Cache != DefaultStatusCache ||
		c.Timeout != DefaultStatusTimeout || c.Failures != DefaultStatusFailures || c.Jitter != DefaultStatusJitter {
		t.Errorf("%+v", c)
	}
	own := StatusConfig[int, int]{
		Name: "own", Query: query, Every: time.Hour, Batch: 7, Cache: 9, Timeout: time.Minute, Failures: 3, Jitter: 0.25,
	}
	if c := NewStatus(s, own).config; c.Every != own.Every || c.Batch != 7 || c.Cache != 9 || c.Timeout != time.Minute ||
		c.Failures != 3 || c.Jitter != 0.25 {
		t.Errorf("%+v", c)
	}
}

// A waiter whose condition an answer does not meet goes on waiting, and one whose condition panics ends.
func TestStatusAnswersWhoAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		n := 0
		st := NewStatus(s, StatusConfig[string, int]{
			Name: "counting", Every: time.Second,
			Query: func(context.Context, []string) (map[string]int, error) { n++; return map[string]int{"a": n}, nil },
		})
		a, err := st.Wait(t.Context(), "a", func(a Answer[int]) bool { return a.Value == 3 })
		if err != nil || a.Value != 3 {
			t.Errorf("%+v, %v", a, err)
		}
		if _, err := st.Wait(t.Context(), "a", func(Answer[int]) bool { panic("condition") }); err == nil {
			t.Error("a condition that panics has an answer")
		}
		before := time.Now()
		if st.block(time.Minute); time.Since(before) != time.Minute {
			select { // somebody left
			case <-st.nudged:
			default:
			}
			before = time.Now()
			if st.block(time.Minute); time.Since(before) != time.Minute {
				t.Errorf("with a limit it blocked for %v", time.Since(before))
			}
		}
	})
}

func TestSlotsAreNoMoreThanWhatWasChosen(t *testing.T) {
	s := newTest(t, Config{})
	if s.chosen = 1; s.limit() != 1 {
		t.Errorf("one processor was chosen, and there are %d", s.limit())
	}
	s.chosen = 0
	if n := processors.Allowed(); processors.CgroupLimit() == 0 && s.limit() != n {
		t.Errorf("%d processors are allowed, and there are %d", n, s.limit())
	}
	if least := newTest(t, Config{Slots: 3, Spare: 1}); least.slots.spare != 0 {
		t.Error("it has slots")
	} else if least.fit(); least.slots.total != 3 || least.slots.spare != 0 {
		t.Errorf("%d slots, %d over them", least.slots.total, least.slots.spare)
	}
	own := newTest(t, Config{Slots: 3, Spare: 2})
	if own.fit(); own.slots.total != 3 || own.slots.spare != 1 {
		t.Errorf("%d slots, %d over them", own.slots.total, own.slots.spare)
	}
}

// While no task is there, the process has been given back what was for them.
func TestTenderLeavesAfterTheLastTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Slots: 1})
		defer s.Close()
		if err := s.Run(t.Context(), func(*Task) error { return nil }); err != nil {
			t.Fatal(err)
		}
		td := s.tender.Load()
		if td == nil {
			t.Fatal("nobody tends")
		}
		pass(s, tendLinger/2, t)
		if s.tender.Load() == nil {
			t.Error("it left at once")
		}
		pass(s, 3*tendLinger, t)
		if s.tender.Load() != nil || s.prepared {
			t.Error("it stays")
		}
		s.React()
		if err := s.Run(t.Context(), func(*Task) error { return nil }); err != nil {
			t.Fatal(err)
		}
		pass(s, 3*tendLinger, t)
		if s.tender.Load() == nil || s.prepared {
			t.Error("with React it stays, and gives back what was for tasks")
		}
	})
}

func TestCountsOfOneNameAreTakenTogether(t *testing.T) {
	s := newTest(t, Config{})
	for range 2 {
		h := Register(s, Kind[int, int]{
			Name: "twin", Poll: func(waiting []*Request[int, int]) { waiting[0].Done(1, nil) },
		})
		for range 3 {
			if _, err := h.Wait(patient(t), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, k := range s.kinds() {
		if k.name == "twin" && (k.Events != 6 || k.detection.total() != 6 || k.queueing.total() != 6) {
			t.Errorf("%d events, %d detections, %d in queues", k.Events, k.detection.total(), k.queueing.total())
		}
	}
}

func TestFolderIsDeserted(t *testing.T) {
	fs := newFileSet(notices.None(), time.Second, time.Hour)
	r := requestFor("/a/b")
	fs.group(r, true)
	f := fs.folders["/a"]
	if f.deserted() {
		t.Error("somebody waits in it")
	}
	f.itself[r] = true
	delete(f.waiting, r)
	if f.deserted() {
		t.Error("somebody waits for it")
	}
	if delete(f.itself, r); !f.deserted() {
		t.Error("nobody waits")
	}
}

func TestSignalsThatAreKept(t *testing.T) {
	g := &Signals{}
	for range DefaultSignals + 3 {
		if g.first(os.Interrupt) != nil {
			t.Fatal("somebody waits")
		}
	}
	if len(g.pending) != DefaultSignals {
		t.Errorf("%d are kept", len(g.pending))
	}
}

// What a task is to do at its checkpoints follows from who runs and who waits.
func TestTurnsOfTasks(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 1, 0)
	a, b := bareTask(0), bareTask(0)
	sl.start(b, 0)
	sl.pause(b, 0, allOfIt)
	if !sl.start(a, 0) || !sl.wake(b, ms) || a.marks.Load() == 0 {
		t.Fatal("nobody is over the slots")
	}
	if !sl.owes(a, 1, ms) || sl.owes(b, 1, ms) {
		t.Error("the one that has used more owes the slot")
	}
	if sl.end(b, 2*ms, allOfIt); a.marks.Load() != 0 {
		t.Errorf("alone it has the marks %b", a.marks.Load())
	}
	if sl.stall(a, 2*ms) {
		t.Error("it lends its slot to nobody")
	}
	c := bareTask(0)
	sl.start(c, 2*ms)
	if want := a.share.since + int64(c.share.used-a.share.used); want <= 0 || sl.turnOf(a, 2*ms) != want {
		t.Errorf("beside a new one its turn ends at %d, not %d", sl.turnOf(a, 2*ms), want)
	}
}

// No more tasks run than the slots and those over them.
func TestSlotsAreNotExceeded(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 0, 0)
	holder, woken := bareTask(0), bareTask(0)
	sl.start(woken, 0)
	sl.pause(woken, 0, allOfIt)
	sl.start(holder, 0)
	if sl.wake(woken, ms) {
		t.Fatal("it runs over slots that are none")
	}
	if sl.rouse(int64(time.Second)); woken.wasGranted() || sl.computing() != 1 {
		t.Errorf("%d run", sl.computing())
	}
}

func TestIdleIsLessThanHalfOfTheTime(t *testing.T) {
	l := look{at: 100, account: account{used: 50, delayed: 10}}
	for _, c := range []struct {
		used, delayed time.Duration
		want          bool
	}{
		{50, 10, true}, {99, 10, true}, {100, 10, false}, {99, 12, false}, {98, 12, true}, {150, 10, false},
	} {
		if got := l.idleBetween(account{used: c.used, delayed: c.delayed}, 200); got != c.want {
			t.Errorf("%d used and %d delayed: idle %v", c.used-50, c.delayed-10, got)
		}
	}
}

func TestWhatIsLearnedFromEvents(t *testing.T) {
	born := time.Now()
	var a adaptation
	for _, wait := range []time.Duration{0, time.Microsecond - 1, time.Microsecond, 3 * time.Microsecond, time.Hour} {
		a.ended(&entry{born: born, ended: born.Add(wait)})
	}
	if a.waits[0] != 2 || a.waits[1] != 1 || a.waits[2] != 1 || a.waits[len(a.waits)-1] != 1 || a.events != 5 {
		t.Errorf("%d events, %v", a.events, a.waits)
	}
	a.polledFor(80, true)
	if a.poll != 10 || a.free != 0.125 {
		t.Errorf("a poll takes %v, and %v are free", a.poll, a.free)
	}
	if a.polledFor(10, false); a.free != 0.125-0.125/8 {
		t.Errorf("%v are free", a.free)
	}
	quick := adaptation{events: learned}
	if quick.waits[0] = learned; quick.spin() != time.Microsecond {
		t.Errorf("for what comes at once it spins for %v", quick.spin())
	}
	if quick.events--; quick.spin() != 0 {
		t.Error("it spins before anything is learned")
	}
	slow := adaptation{events: learned}
	if slow.waits[4] = learned; slow.spin() != 0 {
		t.Errorf("it spins for %v, longer than a block costs", slow.spin())
	}
}

// An event that is there is found at once, whatever the interval.
func TestFirstRequestIsPolledForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		h := Register(s, Kind[int, int]{
			Name: "there", Interval: time.Hour, Eager: -1,
			Poll: func(waiting []*Request[int, int]) { waiting[0].Done(1, nil) },
		})
		start := time.Now()
		if _, err := h.Wait(t.Context(), 1); err != nil || time.Since(start) > 0 {
			t.Errorf("found after %v, %v", time.Since(start), err)
		}
	})
}

func TestStatusAsksOnlyForSomebody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		defer s.Close()
		queries := 0
		st := NewStatus(s, StatusConfig[string, int]{
			Name: "asked", Every: time.Second,
			Query: func(_ context.Context, keys []string) (map[string]int, error) {
				if queries++; len(keys) == 0 {
					t.Error("it asks for nobody")
				}
				return map[string]int{"a": queries}, nil
			},
		})
		st.block(0)
		if _, err := st.Get(t.Context(), "a", 0); err != nil || queries != 1 {
			t.Fatalf("%d queries, %v", queries, err)
		}
		<-time.After(5 * time.Second)
		if a, err := st.Get(t.Context(), "a", 5*time.Second); err != nil || a.Value != 1 {
			t.Errorf("an answer that is just as old as it may be is %+v, %v", a, err)
		}
		if a, err := st.Get(t.Context(), "a", 5*time.Second-1); err != nil || a.Value != 2 {
			t.Errorf("an answer that is older is %+v, %v", a, err)
		}
	})
}

func TestTurnsBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Slots: 1})
		defer s.Close()
		err := s.Run(t.Context(), func(task *Task) error {
			if err := s.Sleep(task.Context(), time.Hour); err != nil {
				return err
			}
			if !task.started.Equal(time.Now()) {
				t.Errorf("the turn began %v ago", time.Since(task.started))
			}
			task.Block(func() {
				if task.mine() {
					t.Error("it has its slot while it blocks")
				}
			})
			if !task.mine() {
				t.Error("it has no slot after it has blocked")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A task whose context ends while it waits for its first slot is not run, and leaves no slot taken, also where it is
// granted one at that moment.
func TestTaskThatEndsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Slots: 1})
		defer s.Close()
		for i := range 100 {
			leave, ran := make(chan struct{}), false
			holder := s.Go(t.Context(), func(*Task) error { <-leave; return nil })
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			queued := s.Go(ctx, func(*Task) error { ran = true; return nil })
			synctest.Wait()
			if cancel(); i%2 == 0 {
				if err := queued.Wait(t.Context()); !errors.Is(err, context.Canceled) || ran {
					t.Fatalf("%v, ran %v", err, ran)
				}
			}
			close(leave)
			if err := holder.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := queued.Wait(t.Context()); (err == nil) != ran || err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%v, ran %v", err, ran)
			}
			synctest.Wait()
			if total, running, waiting := s.slotSizes(); total != 1 || running != 0 || waiting != 0 {
				t.Fatalf("%d slots, %d tasks run, %d wait", total, running, waiting)
			}
		}
	})
}
