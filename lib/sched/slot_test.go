package sched

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"fairway/lib/seed"
)

func bareTask(priority int) *Task {
	return &Task{priority: priority, granted: make(chan struct{}, 1)}
}

func (t *Task) wasGranted() bool {
	select {
	case <-t.granted:
		return true
	default:
		return false
	}
}

const (
	us = int64(time.Microsecond)
	ms = int64(time.Millisecond)
)

func TestDebtIsPaidAtACheckpoint(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 1, 0)
	a, b := bareTask(0), bareTask(0)
	sl.start(b, 0)
	sl.pause(b, 0, allOfIt)
	if !sl.start(a, 0) || !sl.wake(b, ms) {
		t.Fatal("no slot")
	}
	if a.marks.Load()&markYield == 0 || b.marks.Load()&markYield != 0 {
		t.Fatalf("marks %b, %b", a.marks.Load(), b.marks.Load())
	}
	if yields, _ := sl.turn(b, ms+us, allOfIt); yields {
		t.Fatal("the woken task pays at once")
	}
	if yields, next := sl.turn(a, ms+us, allOfIt); !yields || next != nil {
		t.Fatal("the other task does not pay")
	}
	sl.end(b, 2*ms, allOfIt)
	if !a.wasGranted() {
		t.Fatal("the slot did not come back")
	}
}

func TestOwnCheckpointPaysAfterGrace(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 1, 0)
	a, b := bareTask(0), bareTask(0)
	sl.start(b, 0)
	sl.pause(b, 0, allOfIt)
	sl.start(a, 0)
	sl.wake(b, ms)
	if yields, _ := sl.turn(b, ms+int64(Grace), allOfIt); !yields {
		t.Fatal("does not pay")
	}
}

// A task that has had more than its share does not go before others because it waited
// for a moment.
func TestWakingUpIsNoWayToTheHeadOfTheQueue(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 1, 0)
	greedy, modest, other := bareTask(0), bareTask(0), bareTask(0)
	sl.start(greedy, 0)
	sl.start(modest, 0)
	sl.pause(greedy, 5*ms, allOfIt)
	if !modest.wasGranted() {
		t.Fatal("modest does not run")
	}
	sl.start(other, 5*ms)
	if sl.wake(greedy, 5*ms+100*us) {
		t.Error("runs over the slots")
	}
	sl.pause(modest, 6*ms, allOfIt)
	if !other.wasGranted() {
		t.Error("the newcomer does not go first")
	}
}

func TestLevelsGoWithTheirLastTask(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 1, 0)
	for p := range 100 {
		task := bareTask(p)
		sl.start(task, int64(p))
		sl.pause(task, int64(p), allOfIt)
		sl.wake(task, int64(p))
		queued := bareTask(-p)
		sl.start(queued, int64(p))
		if !sl.abandon(queued, int64(p)) {
			t.Fatal("not queued")
		}
		sl.end(task, int64(p), allOfIt)
	}
	if len(sl.levels) != 0 {
		t.Errorf("%d levels", len(sl.levels))
	}
}

func TestStalledTaskLendsItsSlot(t *testing.T) {
	sl := &slots{}
	sl.resize(1, 1, 0)
	a, b := bareTask(0), bareTask(0)
	sl.start(a, 0)
	sl.start(b, 0)
	sl.stall(a, ms)
	if !b.wasGranted() {
		t.Fatal("not lent")
	}
	if yields, _ := sl.turn(a, 2*ms, allOfIt); yields {
		t.Error("the one that has used less yields")
	}
	if yields, _ := sl.turn(b, 2*ms, allOfIt); !yields {
		t.Error("the debt is not paid")
	}
	sl.stall(a, 3*ms)
	if !b.wasGranted() {
		t.Fatal("not lent again")
	}
	sl.end(a, 4*ms, allOfIt)
	sl.end(b, 4*ms, allOfIt)
	if sl.stalled != 0 || len(sl.running) != 0 || len(sl.levels) != 0 {
		t.Errorf("left over: %+v", sl)
	}
}

// machine runs bare tasks on slots in virtual time, each on a processor of its own.
type machine struct {
	t       testing.TB
	sl      *slots
	random  *rand.Rand
	now     int64
	agenda  agenda
	tasks   []*model
	stretch time.Duration // the longest between two checkpoints so far
}

// model is what a task does.
type model struct {
	*Task
	burst, pause, gap func() time.Duration // computing, waiting, between two checkpoints

	left     time.Duration // of the burst
	began    int64         // to compute without a checkpoint
	slice    time.Duration // until the next checkpoint
	computed time.Duration
	rounds   int
	asked    int64           // for a slot
	before   map[*model]bool // which have computed since
	longest  time.Duration
}

type appointment struct {
	at    int64
	order int
	do    func()
}

type agenda []appointment

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(appointment)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func newMachine(t testing.TB, random *rand.Rand, total, spare int) *machine {
	m := &machine{t: t, sl: &slots{}, random: random}
	m.sl.resize(total, spare, 0)
	m.tend()
	return m
}

// tend does what the scheduler does now and then.
func (m *machine) tend() {
	m.at(tendEvery, func() {
		m.sl.rouse(m.now)
		m.resumeGranted()
		m.tend()
	})
}

func (m *machine) at(d time.Duration, do func()) {
	heap.Push(&m.agenda, appointment{m.now + int64(d), m.random.Int(), do})
}

// add starts a task after a time.
func (m *machine) add(after time.Duration, mo *model) *model {
	mo.Task = bareTask(0)
	m.at(after, func() {
		m.tasks = append(m.tasks, mo)
		mo.left = mo.burst()
		m.ask(mo, m.sl.start(mo.Task, m.now))
	})
	return mo
}

func (m *machine) ask(mo *model, granted bool) {
	mo.asked, mo.before = m.now, make(map[*model]bool)
	for _, o := range m.tasks {
		if o.share.index == onSlot && o != mo {
			mo.before[o] = true
		}
	}
	if granted {
		m.compute(mo)
	}
}

// compute runs mo until its next checkpoint or the end of its burst.
func (m *machine) compute(mo *model) {
	for _, o := range m.tasks {
		if o.share.index >= 0 {
			o.before[mo] = true
		}
	}
	m.waited(mo)
	mo.slice = min(mo.left, mo.gap())
	m.stretch = max(m.stretch, mo.slice)
	mo.began = m.now
	m.at(mo.slice, func() { m.checkpoint(mo) })
}

// waited checks the bound that slots promises.
func (m *machine) waited(mo *model) {
	waited := time.Duration(m.now - mo.asked)
	mo.asked = m.now
	mo.longest = max(mo.longest, waited)
	bound := time.Duration(len(mo.before))*(4*Quantum+4*m.stretch)/time.Duration(m.sl.total) + m.stretch
	if waited > bound {
		m.t.Errorf("a task waited %v, bound %v beside %d tasks on %d slots", waited, bound, len(mo.before), m.sl.total)
	}
}

func (m *machine) checkpoint(mo *model) {
	mo.computed += mo.slice
	if mo.left -= mo.slice; mo.left <= 0 {
		m.finish(mo)
	} else if yields, next := m.sl.turn(mo.Task, m.now, allOfIt); yields {
		m.ask(mo, false)
		if next != nil {
			next.granted <- struct{}{}
		}
	} else {
		m.compute(mo)
	}
	m.resumeGranted()
}

// finish ends a burst, and the task if it is not to pause.
func (m *machine) finish(mo *model) {
	mo.rounds++
	if mo.pause == nil {
		m.sl.end(mo.Task, m.now, allOfIt)
		return
	}
	m.sl.pause(mo.Task, m.now, allOfIt)
	m.at(mo.pause(), func() {
		mo.left = mo.burst()
		m.ask(mo, m.sl.wake(mo.Task, m.now))
	})
}

func (m *machine) resumeGranted() {
	for _, mo := range m.tasks {
		if mo.wasGranted() {
			m.compute(mo)
		}
	}
	if _, running, queued := m.sl.sizes(); queued > 0 && running < m.sl.total {
		m.t.Errorf("%d wait for a slot while %d of %d are taken", queued, running, m.sl.total)
	}
}

func (m *machine) run(until time.Duration) {
	for len(m.agenda) > 0 && m.agenda[0].at <= int64(until) && !m.t.Failed() {
		next := heap.Pop(&m.agenda).(appointment)
		m.now = next.at
		next.do()
	}
	m.now = int64(until)
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// about is a random time of this mean at most twice as long.
func (m *machine) about(d time.Duration) func() time.Duration {
	return func() time.Duration { return time.Duration(m.random.Int64N(int64(2*d))) + 1 }
}

// TestNoTaskWaitsLongerThanTheBound runs random mixtures of tasks that compute all the
// time, that compute and wait, and that are new.
func TestNoTaskWaitsLongerThanTheBound(t *testing.T) {
	random := seed.Source(t)
	runs := 8
	if os.Getenv("FAIRWAY_SOAK") != "" {
		runs = 100
	}
	for range runs {
		runSeed := random.Uint64()
		m := newMachine(t, rand.New(rand.NewPCG(runSeed, 2)), 1+random.IntN(4), 1+random.IntN(3))
		times := []time.Duration{
			20 * time.Microsecond, 200 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond,
		}
		some := func() time.Duration { return times[m.random.IntN(len(times))] }
		for range 1 + m.random.IntN(40) {
			gap := m.about(times[m.random.IntN(2)])
			burst, pause := m.about(some()), m.about(some())
			switch m.random.IntN(4) {
			case 0:
				burst = always(time.Hour)
			case 1:
				pause = nil
			case 2:
				gap = m.about(5 * time.Millisecond)
			}
			m.add(m.about(300*time.Millisecond)(), &model{burst: burst, pause: pause, gap: gap})
		}
		m.run(time.Second)
		if t.Failed() {
			t.Fatalf("run of seed %d", runSeed)
		}
	}
}

// TestEqualTasksGetEqualShares has tasks compute and wait, with checkpoints and
// without, and a task that only computes among them.
func TestEqualTasksGetEqualShares(t *testing.T) {
	for _, n := range []int{3, 12, 40} {
		for _, gap := range []time.Duration{50 * time.Microsecond, time.Hour} {
			t.Run(fmt.Sprintf("%d tasks, checkpoints every %v", n, gap), func(t *testing.T) {
				m := newMachine(t, seed.Source(t), 2, 1)
				for range n {
					m.add(0, &model{burst: m.about(400 * time.Microsecond), pause: m.about(100 * time.Microsecond), gap: always(gap)})
				}
				hog := m.add(0, &model{burst: always(time.Hour), gap: always(50 * time.Microsecond)})
				m.run(5 * time.Second)
				newcomer := m.add(0, &model{burst: always(time.Millisecond), gap: always(gap)})
				m.run(6 * time.Second)
				least, most := m.tasks[0].computed, m.tasks[0].computed
				for _, mo := range m.tasks[:n] {
					least, most = min(least, mo.computed), max(most, mo.computed)
				}
				if n > 3 && float64(most) > 1.1*float64(least) {
					t.Errorf("tasks computed from %v to %v", least, most)
				}
				if hog.computed < least*9/10 {
					t.Errorf("the task that only computes did so for %v, others for %v", hog.computed, least)
				}
				if newcomer.rounds == 0 || newcomer.longest > 100*time.Millisecond {
					t.Errorf("a newcomer waited for %v", newcomer.longest)
				}
			})
		}
	}
}

// TestTaskThatUsesLittleGoesAtOnce is the reaction of a task beside many that compute.
func TestTaskThatUsesLittleGoesAtOnce(t *testing.T) {
	for _, n := range []int{2, 10, 40} {
		m := newMachine(t, seed.Source(t), 2, 1)
		for range n {
			m.add(0, &model{burst: always(time.Hour), gap: always(50 * time.Microsecond)})
		}
		echo := m.add(0, &model{
			burst: m.about(20 * time.Microsecond), pause: m.about(5 * time.Millisecond), gap: always(time.Hour),
		})
		m.run(time.Second)
		echo.longest = 0
		m.run(5 * time.Second)
		if echo.longest > 0 {
			t.Errorf("beside %d tasks it waits up to %v", n, echo.longest)
		}
	}
}

// TestReactionDoesNotDependOnCheckpoints has tasks that are woken beside more tasks than
// slots which pass none, and which nobody else can have a slot from.
func TestReactionDoesNotDependOnCheckpoints(t *testing.T) {
	for _, n := range []int{2, 10, 40} {
		for _, waking := range []int{1, 3} {
			m := newMachine(t, seed.Source(t), 2, 1)
			var woken []*model
			for range waking {
				woken = append(woken, m.add(0, &model{
					burst: m.about(20 * time.Microsecond), pause: m.about(5 * time.Millisecond), gap: always(time.Hour),
				}))
			}
			for range n {
				m.add(time.Millisecond, &model{burst: always(time.Hour), gap: always(time.Hour)})
			}
			m.run(200 * time.Millisecond)
			for _, mo := range woken {
				if mo.longest > 2*tendEvery {
					t.Errorf("beside %d tasks that have just begun, one of %d woken ones waited for %v", n, waking, mo.longest)
				}
				mo.longest, mo.rounds = 0, 0
			}
			m.run(5 * time.Second)
			for _, mo := range woken {
				if mo.longest > time.Duration(waking-1)*40*time.Microsecond || mo.rounds < 500 {
					t.Errorf("beside %d tasks, one of %d woken ones waited up to %v and did %d rounds", n, waking,
						mo.longest, mo.rounds)
				}
			}
		}
	}
}
