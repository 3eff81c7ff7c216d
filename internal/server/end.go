package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"fairway/internal/dispatch"
)

const (
	// ProblemLimit bounds the problems that a run tells of. Failed jobs keep
	// theirs.
	ProblemLimit = 20
	// NoteLimit bounds the notes that a run tells of. Jobs keep theirs.
	NoteLimit = 20
)

// phase of a run's life. They follow each other in this order.
type phase uint8

const (
	running  phase = iota
	draining       // nothing new is started; what runs goes on
	leaving        // what runs is ended
	over           // no pilot is left, all is published
)

// ending decides when a run has ended. It belongs to the loop, but for the
// wishes, which come from anywhere.
type ending struct {
	keepGoing bool
	leaveTime time.Duration // of Config
	phase     phase
	owed      obligations
	failed    int // jobs that failed for good
	problems  remarks
	notes     remarks
	fatal     bool  // the run cannot go on at all
	asked     bool  // a person ended it
	publish   error // publication was given up

	leaveBy   time.Time // when pilots that have not left are withdrawn; zero: not yet decided
	withdrawn bool      // they were
	abandoned bool      // nor have they left then: closing the batch system ends what hears no signal

	mu   sync.Mutex // guards wish
	wish phase      // what a person asks for
}

// obligations are effects that were let out, or will be, and are not confirmed.
type obligations struct {
	publish map[dispatch.FileRef]bool
	remove  map[string]bool
}

func newObligations() obligations {
	return obligations{publish: map[dispatch.FileRef]bool{}, remove: map[string]bool{}}
}

func (o *obligations) owe(e *dispatch.Effects) {
	for _, p := range e.Publish {
		o.publish[p.File] = true
	}
	for _, pfn := range e.Remove {
		o.remove[pfn] = true
	}
}

func (o *obligations) met(in dispatch.Input) {
	switch in := in.(type) {
	case dispatch.Published:
		delete(o.publish, in.File)
	case dispatch.Removed:
		delete(o.remove, in.PFN)
	}
}

func (o *obligations) none() bool { return len(o.publish) == 0 && len(o.remove) == 0 }

// ask wishes for an end: with drain after what runs, else at once. A wish is
// never taken back.
func (e *ending) ask(drain bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	to := leaving
	if drain {
		to = draining
	}
	e.wish = max(e.wish, to)
}

func (e *ending) wished() phase {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wish
}

// observe takes note of jobs that failed, and of what pilots noticed.
func (e *ending) observe(event *dispatch.Event) {
	if event.Result != nil {
		for _, text := range event.Result.Notes {
			e.note(fmt.Sprintf("job %s: %s", event.Name, text))
		}
	}
	if event.Kind == dispatch.FileLost {
		e.note(fmt.Sprintf("a stored file is lost, and made again by job %s when it is needed: %s", event.Name, event.Reason))
	}
	if event.Kind == dispatch.JobFailed {
		e.failed++
		e.problem(fmt.Sprintf("job %s failed: %s", event.Name, event.Reason))
	}
}

func (e *ending) problem(text string) { e.problems.add(text, ProblemLimit) }

func (e *ending) note(text string) { e.notes.add(text, NoteLimit) }

// broken says that flow and dispatch disagree, or another thing that no retry
// repairs. The run ends; its state stays.
func (e *ending) broken(err error) {
	e.fatal = true
	e.problem(err.Error())
}

// publishGivenUp says that results could not be put where they belong.
func (e *ending) publishGivenUp(ref dispatch.FileRef, err error) {
	delete(e.owed.publish, ref)
	e.publish = errors.Join(e.publish, err)
	e.problem(err.Error())
}

func (e *ending) reached() bool { return e.phase == over }

// reloaded forgets what the cores forgot, and tells them again of an end that
// was under way.
func (e *ending) reloaded(l *loop) {
	if e.phase != running {
		e.step(l, e.phase)
	}
}

// look is called after every turn of the loop, and moves on to the next phase
// if it is time.
func (e *ending) look(l *loop) {
	if wish := e.wished(); wish > e.phase {
		e.asked = true
		e.step(l, wish)
	}
	if e.phase == running && e.nothingToDo(l) {
		e.step(l, draining)
	}
	if e.phase == running || e.phase == over {
		return
	}
	e.hurry(l)
	if e.allGone(l) {
		e.phase = over
	}
}

// hurry withdraws pilots that should have left: they run nothing any more, or
// were told to end it, and leaveTime has passed since. Results that are still
// being published are waited for, however long that takes.
func (e *ending) hurry(l *loop) {
	if e.abandoned || e.phase == draining && executing(l.Dispatch) > 0 || l.pilots.none() {
		return
	}
	now := time.Now()
	if e.leaveBy.IsZero() {
		e.leaveBy = now.Add(e.leaveTime)
		l.waker.end(e.leaveBy)
	}
	if now.Before(e.leaveBy) {
		return
	}
	if e.withdrawn {
		e.abandoned = true
		return
	}
	e.withdrawn = true
	e.leaveBy = now.Add(e.leaveTime)
	l.waker.end(e.leaveBy)
	l.pilots.withdraw(l.pilots.launches())
}

// step tells dispatch.
func (e *ending) step(l *loop, to phase) {
	e.phase, e.leaveBy = to, time.Time{}
	if err := l.stepDispatch(dispatch.Stop{Drain: to == draining}); err != nil {
		e.broken(fmt.Errorf("ending the run: %w", err))
		e.phase = over
	}
}

// nothingToDo says that no job can run any more, or none may.
func (e *ending) nothingToDo(l *loop) bool {
	if e.fatal || e.failed > 0 && !e.keepGoing {
		return true
	}
	if active(l.Dispatch) > 0 {
		return false
	}
	return l.Tally.Finished || l.feeds.allClosed() && l.waker.wanted[1].IsZero()
}

// active counts the jobs that may still come to an end by themselves.
func active(core *dispatch.Core) int {
	totals := core.Totals()
	count := 0
	for _, state := range []dispatch.State{dispatch.Waiting, dispatch.Ready, dispatch.Assigned, dispatch.Running, dispatch.Committing} {
		count += totals.ByState[state]
	}
	return count
}

// executing counts the jobs that pilots have.
func executing(core *dispatch.Core) int {
	totals := core.Totals()
	return totals.ByState[dispatch.Assigned] + totals.ByState[dispatch.Running] + totals.ByState[dispatch.Committing]
}

// allGone says that no pilot is left and everything is done that durable
// records promise.
func (e *ending) allGone(l *loop) bool {
	return (e.abandoned || l.pilots.none()) && e.owed.none() && l.flying == nil && l.gathering.empty()
}
