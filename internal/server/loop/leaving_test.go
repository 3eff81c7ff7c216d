package loop

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// lingering are pilots that do not leave.
type lingering struct {
	Pilots
	names     []string
	withdrawn [][]string
	gone      bool
}

func (p *lingering) None() bool                 { return p.gone }
func (p *lingering) Awaited() []string          { return slices.Clone(p.names) }
func (p *lingering) Launches() []string         { return p.names }
func (p *lingering) Withdraw(launches []string) { p.withdrawn = append(p.withdrawn, launches) }

// lingeringLoop is a loop whose pilots do not leave, with one run.
func lingeringLoop(t *testing.T, pilots *lingering, leaveTime time.Duration) (*Loop, *Run) {
	t.Helper()
	s := sched.New(sched.Config{})
	core, _ := dispatch.New(taskqueue.Config{})
	run := NewRun(state.RunOf{Run: 1})
	l := New(Config{
		Inbox: NewInbox(), Runs: []*Run{run}, Pilots: pilots, Sched: s, LeaveTime: leaveTime,
		Log: slog.New(slog.DiscardHandler),
	})
	l.Dispatch = core
	t.Cleanup(s.Close)
	t.Cleanup(l.waker.stop)
	return l, run
}

// An end is never taken back, and one at once goes past one that waits.
func TestEndsAreNotTakenBack(t *testing.T) {
	for _, c := range []struct {
		asked []bool // to drain
		want  phase
	}{
		{nil, running}, {[]bool{true}, draining}, {[]bool{false}, leaving}, {[]bool{true, false}, leaving},
		{[]bool{false, true}, leaving}, {[]bool{true, true}, draining},
	} {
		e, v := newEnding(), newLeaving()
		for _, drain := range c.asked {
			e.Request(drain)
			v.Request(drain)
		}
		if e.requested != c.want || e.Asked() != (c.want != running) || e.cutsShort() != (c.want != running) {
			t.Errorf("after %v a run is to be in phase %d, and was asked: %t", c.asked, e.requested, e.Asked())
		}
		if v.asked() != c.want {
			t.Errorf("after %v a loop is to be in phase %d", c.asked, v.asked())
		}
	}
}

// A loop leaves with its run, and one that is Lasting only when it is asked to.
func TestLoopsLeaveWithTheirRuns(t *testing.T) {
	for _, c := range []struct {
		lasting bool
		asked   phase
		runs    []phase
		want    phase
	}{
		{false, running, []phase{running}, running}, {false, running, []phase{draining}, draining},
		{false, leaving, []phase{draining}, leaving}, {false, draining, []phase{leaving}, leaving},
		{true, running, []phase{over, leaving}, running}, {true, draining, []phase{leaving}, draining},
		{true, leaving, nil, leaving}, {false, running, nil, running},
	} {
		v := newLeaving()
		v.requested = c.asked
		l := &Loop{Config: Config{Lasting: c.lasting}, runs: map[taskqueue.RunID]*Run{}}
		for i, p := range c.runs {
			run := NewRun(state.RunOf{Run: taskqueue.RunID(i + 1)})
			run.Ending.phase = p
			l.runs[run.Run] = run
		}
		if got := v.wanted(l); got != c.want {
			t.Errorf("%+v: phase %d", c, got)
		}
	}
}

// What is not confirmed is owed: files of any run, and removals.
func TestWhatIsOwed(t *testing.T) {
	l := &Loop{Leaving: newLeaving(), runs: map[taskqueue.RunID]*Run{1: {Ending: newEnding()}, 2: {Ending: newEnding()}}}
	if l.owes() {
		t.Error("something is owed at the beginning")
	}
	file := taskqueue.FileRef{LFN: "x", Version: 1}
	l.runs[2].Ending.owedFiles[file] = taskqueue.StoredFile{File: file}
	if !l.owes() || l.runs[2].Ending.ToPublish() != 1 {
		t.Error("a file that is not published is not owed")
	}
	l.runs[2].Ending.published(file)
	l.Leaving.owedRemovals["/x"] = true
	if !l.owes() {
		t.Error("a removal is not owed")
	}
	l.Leaving.forgetOwed()
	if l.owes() {
		t.Error("what was forgotten is owed")
	}
}

// Pilots that do not leave are told of, then withdrawn, then given up, each once and in this order.
func TestPilotsThatDoNotLeave(t *testing.T) {
	const leaveTime = time.Minute
	for to, tellAfter := range map[phase]time.Duration{draining: slowLeave, leaving: slowEnd} {
		synctest.Test(t, func(t *testing.T) {
			pilots := &lingering{names: []string{"a", "b", "c", "d", "e"}}
			l, run := lingeringLoop(t, pilots, leaveTime)
			v := l.Leaving
			v.phase = to
			v.hurry(l)
			look := func(after time.Duration, notes, withdrawn int, abandoned bool) {
				t.Helper()
				<-time.After(after)
				v.hurry(l)
				if got := len(run.Ending.Notes()); got != notes || len(pilots.withdrawn) != withdrawn || v.abandoned != abandoned {
					t.Errorf("phase %d: %d notes, withdrawn %v, abandoned %t", to, got, pilots.withdrawn, v.abandoned)
				}
			}
			look(tellAfter-1, 0, 0, false)
			look(1, 1, 0, false)
			look(leaveTime-tellAfter-1, 1, 0, false)
			look(1, 1, 1, false)
			look(leaveTime-1, 1, 1, false)
			look(1, 1, 1, true)
			look(leaveTime, 1, 1, true)
			note := run.Ending.Notes()[0]
			if !strings.Contains(note, "a, b, c, 2 more;") || !slices.Equal(pilots.withdrawn[0], pilots.names) {
				t.Errorf("told: %s; withdrawn: %v", note, pilots.withdrawn)
			}
		})
	}
}

// Pilots that may leave soon are told of when they should have left, and those that have left never.
func TestPilotsThatLeaveInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pilots := &lingering{names: []string{"a", "b", "c"}}
		l, run := lingeringLoop(t, pilots, slowLeave/2)
		l.Leaving.phase = draining
		l.Leaving.hurry(l)
		<-time.After(slowLeave / 2)
		l.Leaving.hurry(l)
		if notes := run.Ending.Notes(); len(notes) != 1 || !strings.Contains(notes[0], ": a, b, c;") {
			t.Errorf("told: %q", notes)
		}
		pilots.gone = true
		<-time.After(time.Hour)
		l.Leaving.hurry(l)
		if l.Leaving.abandoned {
			t.Error("pilots that have left are given up")
		}
	})
}

// A loop is woken at the earliest time that is wanted, and then at those that are still to come.
func TestTheEarliestTimeWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := lingeringLoop(t, &lingering{}, 0)
		w, began := l.waker, state.Now()
		wakes := func(want time.Duration) {
			t.Helper()
			<-w.fired
			if got := state.Now().Sub(began); got != want {
				t.Errorf("woken after %v; want %v", got, want)
			}
			w.reset()
		}
		w.want(byFlow, began.Add(3*time.Second))
		w.want(byDispatch, began.Add(time.Second))
		w.want(byLeaving, began.Add(5*time.Second))
		wakes(time.Second)
		wakes(3 * time.Second)
		w.want(byLeaving, time.Time{}) // nobody wants the last any more; its timer is left alone
		wakes(5 * time.Second)
		if !w.armed.IsZero() {
			t.Errorf("it is to wake at %v", w.armed)
		}
	})
}

// What was put comes out in its order, all at once.
func TestMailboxKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sched.New(sched.Config{})
		defer s.Close()
		m := NewMailbox[int]()
		m.Put()
		if len(m.ready) != 0 {
			t.Error("nothing was put, and is to be taken")
		}
		m.Put(1, 2)
		m.Put(3)
		if got, err := m.Take(t.Context(), s); err != nil || !slices.Equal(got, []int{1, 2, 3}) {
			t.Errorf("taken: %v, %v", got, err)
		}
		if len(m.ready) != 0 || m.items != nil {
			t.Error("it is not empty")
		}
		m.Put(4)
		if got, err := m.Take(t.Context(), s); err != nil || !slices.Equal(got, []int{4}) {
			t.Errorf("taken: %v, %v", got, err)
		}
	})
}
