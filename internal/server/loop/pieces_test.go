package loop

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/explain"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// Who asks while many jobs are submitted is answered before all of them are, and not before what was
// acknowledged. All of a submission is in one transaction, or nothing is.
func TestQuestionsOvertakeSubmissions(t *testing.T) {
	work, err := workflow.Parse("workflow.yaml", []byte("workflow: w\nopen: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := flow.New(work)
	if err != nil {
		t.Fatal(err)
	}
	s := sched.New(sched.Config{})
	defer s.Close()
	core, _ := dispatch.New(taskqueue.Config{})
	run := NewRun(state.RunOf{Run: 1, Workflow: work})
	run.Cores = state.Cores{Run: 1, Dispatch: core, Flow: steps, Tally: &state.Tally{Nodes: new(state.Nodes)}}
	l := New(Config{Inbox: NewInbox(), Runs: []*Run{run}, Pilots: onePilot{}, Sched: s})
	l.Dispatch = core
	defer l.waker.stop()
	if _, err := core.Step(state.Now(), taskqueue.SetRun{Run: taskqueue.Run{ID: 1}}); err != nil {
		t.Fatal(err)
	}
	submit := func(first, n int) *Request {
		in := taskqueue.Submit{Run: 1}
		for i := range n {
			in.Jobs = append(in.Jobs, taskqueue.Job{Name: fmt.Sprint(first + i), Step: "s"})
		}
		return &Request{Run: 1, Dispatch: []taskqueue.Input{in}}
	}
	jobs := func() int {
		view, _ := core.Run(1)
		return view.Totals.Jobs
	}
	const many = 3*pieceJobs + 1
	seen := -1
	if err := l.Inbox.Of(1).Send(t.Context(), &Request{Ask: func(*state.Cores) { seen = jobs() }}); err != nil {
		t.Fatal(err)
	}
	l.take(submit(0, many))
	if seen != pieceJobs {
		t.Errorf("the question was answered when %d jobs were there", seen)
	}
	if n := len(l.gathering.records); jobs() != many || n != many {
		t.Errorf("%d jobs are there, and %d records", jobs(), n)
	}

	twice := submit(many, many)
	last := &twice.Dispatch[0].(taskqueue.Submit).Jobs[many-1]
	last.Name = "0"
	var refused error
	twice.Done = func(err error) { refused = err }
	l.take(twice)
	if n := len(l.gathering.records); !errors.Is(refused, taskqueue.ErrRefused) || jobs() != many || n != many {
		t.Errorf("a submission with a job that was there: %v, %d jobs and %d records", refused, jobs(), n)
	}
}

// A run that has many jobs to make makes a piece of them, and then whoever waits is served. It goes on until all are
// made, and is not over before.
func TestOthersAreServedBetweenPieces(t *testing.T) {
	work, err := workflow.Parse("workflow.yaml", fmt.Appendf(nil,
		"workflow: w\nsteps: {s: {times: %d, writes: \"out/{number}\", command: 'true'}}\n", 3*flow.PieceJobs))
	if err != nil {
		t.Fatal(err)
	}
	s := sched.New(sched.Config{})
	defer s.Close()
	core, _ := dispatch.New(taskqueue.Config{})
	run := NewRun(state.RunOf{Run: 1, Workflow: work})
	if run.Cores, err = state.Begin(run.of(), core, new(state.Nodes)); err != nil {
		t.Fatal(err)
	}
	run.InputsClosed = func() bool { return true }
	l := New(Config{Inbox: NewInbox(), Runs: []*Run{run}, Pilots: onePilot{}, Sched: s, Lasting: true})
	l.Dispatch = core
	defer l.waker.stop()
	jobs := func() int {
		view, _ := core.Run(1)
		return view.Totals.Jobs
	}
	turn := func() {
		t.Helper()
		if err := l.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.flying, l.busy = nil, false
		select {
		case <-l.commits:
		default:
		}
	}
	l.take(&Request{Run: 1, Dispatch: []taskqueue.Input{taskqueue.SetRun{Run: taskqueue.Run{ID: 1}}},
		Flow: []flow.Input{flow.Tick{}}})
	turns := 0
	for ; run.Flow.Unfinished(); turns++ {
		before, seen := jobs(), -1
		if before == 0 || before > flow.PieceJobs*(turns+1) {
			t.Fatalf("%d jobs after %d turns", before, turns)
		}
		note := &Request{Run: 1, Records: make([]taskqueue.Record, 1), toEnding: func(*Ending) { seen = jobs() }}
		if err := l.Inbox.Send(t.Context(), note); err != nil {
			t.Fatal(err)
		}
		turn()
		if seen != before || run.Ending.nothingToDo(l, run) {
			t.Fatalf("a request was served when %d jobs were there, and not %d; the run is over: %t", seen, before,
				run.Ending.nothingToDo(l, run))
		}
	}
	if jobs() != 3*flow.PieceJobs || turns < 3 {
		t.Errorf("%d jobs after %d turns", jobs(), turns)
	}
}

// The loop takes nothing more, but questions, when enough is gathered for the next transaction.
func TestTransactionsAreBounded(t *testing.T) {
	s := sched.New(sched.Config{})
	defer s.Close()
	core, _ := dispatch.New(taskqueue.Config{})
	l := New(Config{Inbox: NewInbox(), Pilots: onePilot{}, Sched: s, Lasting: true})
	l.Dispatch = core
	defer l.waker.stop()
	l.flying, l.busy = new(transaction), true
	records := func() *Request { return &Request{Records: make([]taskqueue.Record, fullGathering/2)} }
	for range 4 {
		if err := l.Inbox.Send(t.Context(), records()); err != nil {
			t.Fatal(err)
		}
	}
	turn := func() {
		t.Helper()
		if err := l.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	turn()
	if n := len(l.gathering.records); n != fullGathering {
		t.Fatalf("%d records are gathered", n)
	}
	asked := false
	if err := l.Inbox.Send(t.Context(), &Request{Ask: func(*state.Cores) { asked = true }}); err != nil {
		t.Fatal(err)
	}
	turn()
	if n := len(l.gathering.records); !asked || n != fullGathering {
		t.Errorf("a question was answered: %t; %d records are gathered", asked, n)
	}
}

// Where more share a transaction the next one begins sooner.
func TestLargeTransactionsAreSpacedLess(t *testing.T) {
	for _, c := range []struct {
		records int
		want    time.Duration
	}{
		{fullTransaction / 2, time.Hour / 2},
		{fullTransaction, time.Hour},
		{largeTransaction, time.Hour},
		{2 * largeTransaction, time.Hour / 2},
		{largeTransaction * 60, time.Minute},
	} {
		if got := spacing(time.Hour, c.records); got != c.want {
			t.Errorf("after %d records the next transaction begins after %v, want %v", c.records, got, c.want)
		}
	}
}

// A turn finds out only of runs that it is about, or that are ending, whether they are over.
func TestATurnLooksAtTheRunsThatChange(t *testing.T) {
	s := sched.New(sched.Config{})
	defer s.Close()
	core, _ := dispatch.New(taskqueue.Config{})
	l := New(Config{Inbox: NewInbox(), Pilots: onePilot{}, Sched: s, Lasting: true})
	l.Dispatch = core
	defer l.waker.stop()
	for id := range taskqueue.RunID(3) {
		run := &Run{Ending: newEnding()}
		run.Run, run.Ending.phase = id+1, over
		l.runs[run.Run] = run
	}
	l.advance()
	if l.all || len(l.touched) > 0 {
		t.Fatalf("%d runs are still to be looked at", len(l.touched))
	}
	l.take(&Request{ofPilot: true})
	if l.all || len(l.touched) > 0 {
		t.Error("a call of a pilot that changes nothing of runs has all of them looked at")
	}
	l.take(&Request{Run: 2, toEnding: func(*Ending) {}})
	if l.all || len(l.touched) != 1 || l.touched[0] != l.runs[2] {
		t.Errorf("a request about run 2 has %v looked at", l.touched)
	}
	l.take(&Request{})
	if !l.all {
		t.Error("a request about no run has not all of them looked at")
	}
	l.advance()
	if l.all || len(l.touched) > 0 {
		t.Errorf("%d runs are still to be looked at", len(l.touched))
	}
}

// A question is asked of a core whose clock goes on, though no input came.
func TestTheClockGoesOnForQuestions(t *testing.T) {
	s := sched.New(sched.Config{})
	defer s.Close()
	core, _ := dispatch.New(taskqueue.Config{ReconnectGrace: -1, Backoff: 2 * time.Hour, MaxBackoff: 2 * time.Hour})
	l := New(Config{Inbox: NewInbox(), Pilots: onePilot{}, Sched: s, Lasting: true})
	l.Dispatch = core
	defer l.waker.stop()
	past := time.Now().Add(-time.Hour)
	a := failsOnce(t, core, past)
	var lines []string
	l.take(&Request{Ask: func(*state.Cores) {
		e, _ := core.Explain(a)
		lines = explain.Lines(&e)
	}})
	if text := strings.Join(lines, "; "); !strings.Contains(text, "in 1h0m") && !strings.Contains(text, "in 59m59") {
		t.Errorf("half of the pause has passed: %q", text)
	}
}

// failsOnce has the only job of a core fail at a time, so that it is tried later.
func failsOnce(t *testing.T, core *dispatch.Core, at time.Time) taskqueue.JobID {
	t.Helper()
	step := func(in taskqueue.Input) taskqueue.Effects {
		e, err := core.Step(at, in)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, Name: "w"}})
	step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "j", Step: "s", Writes: []taskqueue.Output{{LFN: "x"}}}}})
	hello := taskqueue.Sync{Pilot: "p", Seq: 1, Full: true, Hello: &taskqueue.PilotInfo{
		Host: "h", Site: "s", Has: taskqueue.Resources{MilliCPUs: 1000},
	}}
	e := step(hello)
	if len(e.Replies) != 1 || len(e.Replies[0].Answer.Run) != 1 {
		t.Fatalf("%+v", e.Replies)
	}
	a := e.Replies[0].Answer
	step(taskqueue.Sync{Pilot: "p", Seq: 2, LastAnswer: a.Number, Ended: []taskqueue.Result{
		{Job: a.Run[0].Job, Attempt: a.Run[0].Attempt, Outcome: taskqueue.Exited, ExitCode: 3},
	}})
	return a.Run[0].Job
}
