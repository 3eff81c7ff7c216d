// Package explain has the words for why a job is not running: what the TaskQueue tells as facts, in
// sentences for people, which may name commands.
package explain

import (
	"fmt"
	"strings"
	"time"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// Lines says what a job waits for, or what became of it, one reason a line.
func Lines(e *taskqueue.Explanation) []string {
	var t text
	switch e.State {
	case taskqueue.Waiting:
		t.waiting(e)
	case taskqueue.Ready:
		t.ready(e.Ready)
	case taskqueue.Blocked:
		t.say("%s", e.Reason)
	case taskqueue.Assigned, taskqueue.Running:
		t.places(e)
	default:
		t.end(e)
	}
	return t
}

// text are lines.
type text []string

func (t *text) say(format string, args ...any) { *t = append(*t, fmt.Sprintf(format, args...)) }

func (t *text) sayMore(n int, what string) {
	if n > 0 {
		t.say("and so on: %d more%s", n, what)
	}
}

// end tells how a job came to a state that it does not leave by itself, and what became of its outputs.
func (t *text) end(e *taskqueue.Explanation) {
	switch {
	case e.Reason != "": // also of one that was done, and whose outputs were lost
		t.say("%s", e.Reason)
	case e.Reused && e.Taken != nil:
		t.say("nothing was executed: its result is that of %s", e.Taken)
	case e.Reused:
		t.say("nothing was executed: an earlier run had its result")
	case e.Committed != 0:
		t.say("its outputs are committed")
	}
	for _, lfn := range e.Lost {
		t.say("the stored file of %s was lost; it is made again when a job needs it, or with fairway retry", lfn)
	}
	for _, o := range e.Temporary.First {
		switch {
		case o.Removed:
			t.say("%s is temporary, and was removed from storage: all jobs that read it are done", o.LFN)
		case o.Unread:
			t.say("%s is not removed, although its step says temporary: no job reads it", o.LFN)
		case o.Readers > 0:
			t.say("%s is temporary; jobs that read it and are not done: %d", o.LFN, o.Readers)
		default:
			t.say("%s is temporary; further jobs may come that read it", o.LFN)
		}
	}
	t.sayMore(e.Temporary.More, "")
}

func (t *text) waiting(e *taskqueue.Explanation) {
	for _, w := range e.WaitsFor.First {
		switch {
		case w.Behind != "":
			t.say("its request to %s %s stands behind that of job %s, which is %v", w.Behind, w.File.LFN, w.Name, w.State)
		case e.Inputs == nil:
			t.say("version %d of %s, which it reads, is to be made by job %s, which is %v", w.File.Version, w.File.LFN,
				w.Name, w.State)
		}
	}
	if m := e.Inputs; m != nil {
		var states []string
		for _, by := range m.Makers {
			jobs := by.First
			if by.Jobs > 1 {
				jobs = fmt.Sprintf("%d jobs, first %s", by.Jobs, by.First)
			}
			states = append(states, fmt.Sprintf("%v: %s", by.State, jobs))
		}
		t.say("%d of %d inputs are missing; of the jobs that make them are %s", m.Missing, m.Of, strings.Join(states, "; "))
	}
	t.sayMore(e.WaitsFor.More, "")
	if w := e.Twin; w != nil {
		t.say("the same job is %v as %s; its result is taken when it has one, and otherwise this one is executed", w.State,
			&w.Origin)
	}
	if a := e.Again; a != nil {
		t.say("tried again %v, because the last attempt ended with: %s", a.In, a.Reason)
	}
}

// places says where the attempts of a job are. Those of a gang come by task.
func (t *text) places(e *taskqueue.Explanation) {
	for i := range e.Places.First {
		t.place(&e.Places.First[i])
	}
	for _, task := range e.TasksDone {
		t.say("task %d has succeeded; the job is done when all have", task)
	}
	t.sayMore(e.Places.More, " tasks")
}

// place says where an attempt is, and why it has not started there.
func (t *text) place(a *taskqueue.AttemptStanding) {
	where := fmt.Sprintf("pilot %s (host %s)", a.Pilot, a.Host)
	if s := a.Silent; s != nil {
		t.say("its %s has been silent for %v; what it has begun is given out again in %v", where,
			s.For.Round(time.Second), s.Until)
	}
	what, task := fmt.Sprintf("attempt %d", a.Try), ""
	if a.InGang {
		what, task = fmt.Sprintf("task %d of attempt %d", a.Task, a.Try), fmt.Sprintf("task %d ", a.Task)
	}
	switch {
	case a.IsEnding:
		t.say("%s is being ended by %s", what, where)
	case a.Phase == taskqueue.PhaseStaging:
		t.say("%s gets its inputs and ports on %s; the commands begin when all tasks have theirs", what, where)
	case a.Phase == taskqueue.PhaseReady:
		t.say("%s is ready on %s; the commands begin when all tasks are", what, where)
	case a.Phase == taskqueue.PhaseRunning:
		t.say("%s runs on %s", what, where)
	case a.AwaitsTurn:
		t.say("%swaits at %s for its turn, behind %s", task, where, ahead(a.Ahead))
	default:
		t.say("%swas given to %s, which has not started it yet", task, where)
	}
	for i := range a.Inputs {
		t.say("%s", awaited(&a.Inputs[i]))
		for _, s := range a.Away {
			t.say("%s is away, and waited for: %s", s.Server, s.Reason)
		}
	}
}

func ahead(first *taskqueue.JobAhead) string {
	if first == nil {
		return "what is being ended there"
	}
	job := "job " + first.Name
	if first.Name == "" {
		job = "a job of another run"
	}
	job = fmt.Sprintf("%s, which is %v", job, first.State)
	if first.More > 0 {
		job += fmt.Sprintf(", and %d more", first.More)
	}
	return job
}

func awaited(w *taskqueue.AwaitedInput) string {
	from := "storage"
	if strings.Contains(w.Source, "://") {
		from = w.Source
	} else if w.Source != "" {
		from = fmt.Sprintf("the cache of pilot %s", w.Source)
	}
	line := fmt.Sprintf("it waits for input %s, which is read from %s for %v", w.LFN, from, w.For.Round(time.Second))
	isPeer := w.Source != "" && from != w.Source
	if (isPeer || w.Bytes > 0) && w.Size > 0 && w.For > 0 {
		came, rate := min(w.Bytes, w.Size), float64(w.Bytes)/w.For.Seconds()
		line += fmt.Sprintf(": %s of %s have come, %s a second", quantity.Bytes(came), quantity.Bytes(w.Size),
			quantity.Bytes(int64(rate)))
	}
	return line
}
