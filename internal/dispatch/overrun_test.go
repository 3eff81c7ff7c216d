package dispatch

import (
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// overrunning is a Core with a job that may run for an hour and began at the pilot p.
func overrunning(t *testing.T) (*binding, taskqueue.Assignment) {
	b := newBinding(t)
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "j", Step: "s",
		Needs: taskqueue.Resources{Time: time.Hour}}}})
	b.sync("p", nil)
	return b, b.begins("p")
}

// calls has pilots call for so long; change says what p tells.
func (b *binding) calls(d time.Duration, change func(*taskqueue.Sync), pilots ...taskqueue.PilotID) {
	for end := b.now.Add(d); b.now.Before(end); {
		b.after(20 * time.Second)
		b.sync("p", change)
		for _, p := range pilots {
			b.sync(p, nil)
		}
	}
}

// An attempt that a pilot which calls does not end in its time, and a margin, is ended, and its job is given out
// again. The pilot does not get it back by saying that it runs.
func TestAnAttemptThatItsPilotDoesNotEndGoesToOthers(t *testing.T) {
	b, a := overrunning(t)
	b.calls(time.Hour+b.core.config.RunMargin-time.Minute, nil, "q")
	if len(b.has["q"]) > 0 || b.asked[a.Attempt] {
		t.Fatal("it was given up before its time")
	}
	b.calls(2*time.Minute, nil, "q")
	if len(b.has["q"]) != 1 || !b.asked[a.Attempt] {
		t.Fatalf("q has %v, and p is to end %v", b.names("q"), b.asked)
	}
	started := []taskqueue.AttemptRef{{Job: a.Job, Attempt: a.Attempt}}
	for range 3 {
		b.sync("p", func(s *taskqueue.Sync) { s.Full, s.Hello, s.Started = true, &taskqueue.PilotInfo{Host: "p"}, started })
		b.sync("p", func(s *taskqueue.Sync) { s.Started = started })
	}
	if b.core.fleet.attempts[a.Attempt] != nil {
		t.Error("p has it again")
	}
	b.sync("p", func(s *taskqueue.Sync) { s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt}} })
	if j := b.core.jobs.find(a.Job); j.committed != a.Attempt {
		t.Error("a success that comes late does not count")
	}
}

// What moves files is not given up, however long that takes, nor what a silent pilot runs, nor anything because the
// TaskQueue stood still.
func TestSlowFilesAreNoOverrun(t *testing.T) {
	for name, wait := range map[string]func(*binding, taskqueue.Assignment){
		"files": func(b *binding, a taskqueue.Assignment) {
			b.calls(10*time.Hour, func(s *taskqueue.Sync) { s.MovesFiles = []taskqueue.AttemptID{a.Attempt} })
		},
		"silent":      func(b *binding, _ taskqueue.Assignment) { b.after(50 * time.Second); b.after(40 * time.Second) },
		"stood still": func(b *binding, _ taskqueue.Assignment) { b.after(10 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			b, a := overrunning(t)
			if name == "silent" {
				b.calls(time.Hour+b.core.config.RunMargin-time.Minute, nil)
			}
			wait(b, a)
			b.sync("p", nil)
			if b.core.fleet.attempts[a.Attempt] == nil {
				t.Fatal("it was given up")
			}
			b.calls(time.Hour+b.core.config.RunMargin+time.Minute, nil)
			if b.core.fleet.attempts[a.Attempt] != nil {
				t.Error("it is never given up")
			}
		})
	}
}

// A pilot that says for ever that it moves files of an attempt does not keep its job by that.
func TestFilesThatMoveForEverAreAnOverrun(t *testing.T) {
	b, a := overrunning(t)
	moves := func(s *taskqueue.Sync) { s.MovesFiles = []taskqueue.AttemptID{a.Attempt} }
	b.calls(maxMoving+time.Hour, moves, "q")
	if len(b.has["q"]) > 0 {
		t.Fatal("it was given up before its time")
	}
	b.calls(b.core.config.RunMargin+time.Minute, moves, "q")
	if len(b.has["q"]) != 1 || !b.asked[a.Attempt] {
		t.Errorf("q has %v, and p is to end %v", b.names("q"), b.asked)
	}
}
