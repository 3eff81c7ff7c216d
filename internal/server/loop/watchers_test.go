package loop

import (
	"errors"
	"testing"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

type onePilot struct{ Pilots }

func (onePilot) None() bool { return false }

// Who follows a run asks again when something has changed. A question is no change, or each
// would bring the next; all else that the loop is told of is one.
func TestQuestionsAreNoNews(t *testing.T) {
	work,
		err := workflow.Parse("workflow.yaml", []byte("workflow: w\nsteps:\n  a: {writes: x, command: \"echo > $out\"}\n"))
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
	run.Cores = state.Cores{Run: 1, Dispatch: core, Flow: steps, Tally: new(state.Tally)}
	run.InputsClosed = func() bool { return false }
	l := New(Config{Inbox: NewInbox(), Runs: []*Run{run}, Pilots: onePilot{}, Sched: s})
	l.Dispatch = core
	defer l.waker.stop()
	if _, err := core.Step(state.Now(), taskqueue.SetRun{Run: taskqueue.Run{ID: 1}}); err != nil {
		t.Fatal(err)
	}
	question := &Request{Ask: func(*state.Cores) {}}
	nothing := errors.New("nothing")
	for what, c := range map[string]struct {
		requests []*Request
		news     bool
	}{
		"a question":          {[]*Request{question}, false},
		"two questions":       {[]*Request{question, question}, false},
		"a wake-up":           {[]*Request{{}}, true},
		"a note":              {[]*Request{{toEnding: func(e *Ending) { e.Note("text") }}}, true},
		"a question and more": {[]*Request{question, {Prepare: func(*state.Cores, *Request) error { return nothing }}}, true},
	} {
		changed := l.Changes()
		for _, r := range c.requests {
			l.Inbox.requests <- r
		}
		if err := l.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		news := false
		select {
		case <-changed:
			news = true
		default:
		}
		if news != c.news {
			t.Errorf("%s: it is news: %t", what, news)
		}
	}
}
