package loop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

const (
	// ProblemLimit bounds the problems that a run tells of. Failed jobs keep
	// theirs.
	ProblemLimit = 20
	// NoteLimit bounds the notes that a run tells of. Jobs keep theirs.
	NoteLimit = 20
)

// phase of the life of a run, or of a loop. They follow each other in this order.
type phase uint8

const (
	running  phase = iota
	draining       // nothing new is started; what runs goes on
	leaving        // what runs is ended
	over           // nothing runs any more, all is published; of a loop: and no pilot is left
)

// Run is a run as a loop has it.
type Run struct {
	Workflow *workflow.Workflow
	// Cores are those of the run. They belong to the loop, which loads them again after the store
	// failed, but for Run, its number, which stays.
	state.Cores

	// Ending decides when the run is over. It outlives the cores.
	Ending *Ending
	// Results publishes what the run makes; it does not block. What was done comes back as
	// taskqueue.Published.
	Results interface {
		Publish([]taskqueue.StoredFile)
	}
	// InputsClosed reports whether no more files will come.
	InputsClosed func() bool

	wake    time.Time // when flow wants a Tick; zero: never
	touched bool      // in Loop.touched
	listed  bool      // in Loop.unfinished
}

// NewRun makes a run for a loop. Results and InputsClosed are to be set before it gets there.
func NewRun(of state.RunOf) *Run {
	return &Run{Workflow: of.Workflow, Cores: state.Cores{Run: of.Run}, Ending: newEnding()}
}

// setCores gives the run other cores. Its number is the same, and others may read it meanwhile.
func (r *Run) setCores(c *state.Cores) {
	r.Dispatch, r.Flow, r.Tally, r.wake, r.listed = c.Dispatch, c.Flow, c.Tally, time.Time{}, false
}

func (r *Run) of() state.RunOf { return state.RunOf{Run: r.Run, Workflow: r.Workflow} }

// Ending decides when a run is over, and gathers what a person is told of it. It
// lasts longer than the cores, which may be loaded again while it goes on.
type Ending struct {
	// Any goroutine may add to these, also when the loop has ended.
	problems, notes remarks

	mu        sync.Mutex // guards requested
	requested phase      // the phase that a person asks for; it is never taken back

	// All that follows belongs to the loop, and may be read when it has ended.

	phase   phase
	asked   bool  // a person ended it
	fatal   bool  // the run cannot go on at all
	publish error // publications that were given up
	// failures are what was told of jobs that have failed here and are not done.
	failures map[taskqueue.JobID]string

	// Publications that were let out, or will be, and are not confirmed. They are those of
	// the cores, and forgotten with them.
	owedFiles map[taskqueue.FileRef]taskqueue.StoredFile
	// Of them those that were given up. They are published again when the run goes on.
	givenUp map[taskqueue.FileRef]taskqueue.StoredFile
}

func newEnding() *Ending {
	e := &Ending{failures: map[taskqueue.JobID]string{}}
	e.forgetOwed()
	return e
}

// Request asks for an end: with drain after what runs, else at once. The loop sees it
// at its next turn. Any goroutine may call it.
func (e *Ending) Request(drain bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	to := leaving
	if drain {
		to = draining
	}
	e.requested = max(e.requested, to)
}

// Asked reports whether an end was asked for. Any goroutine may call it.
func (e *Ending) Asked() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requested > running
}

// Problem tells a person, once, of something that keeps the run from success. Of jobs that fail and are
// done later the Ending knows by itself.
func (e *Ending) Problem(text string) { e.problems.add(text, ProblemLimit) }

// Note tells a person, once, of something that went another way than the workflow
// says.
func (e *Ending) Note(text string) { e.notes.add(text, NoteLimit) }

// Problems are at most ProblemLimit, in the order in which they came up.
func (e *Ending) Problems() []string { return e.problems.list() }

// Notes are at most NoteLimit, in the order in which they came up.
func (e *Ending) Notes() []string { return e.notes.list() }

// AllProblems are Problems and, when there were more, a line that says how many.
func (e *Ending) AllProblems() []string {
	return e.problems.all("problems that are not told here: %d; `fairway jobs --state failed` lists the jobs that failed")
}

// AllNotes are Notes and, when there were more, a line that says how many.
func (e *Ending) AllNotes() []string {
	return e.notes.all("notes that are not told here: %d; `fairway show JOB` tells those of a job")
}

// Requested reports, when the loop has ended, whether a person ended the run.
func (e *Ending) Requested() bool { return e.asked }

// Failed reports, when the loop has ended, whether the run could not go on, or a
// publication was given up.
func (e *Ending) Failed() bool { return e.fatal || e.publish != nil }

// Rest says, before the loop has the run, that it has ended.
func (e *Ending) Rest() { e.phase = over }

// isEnding reports whether the run will be over by itself.
func (e *Ending) isEnding() bool { return e.phase == draining || e.phase == leaving }

// Over reports whether the run has ended. It is for requests that the loop carries out.
func (e *Ending) Over() bool { return e.phase == over }

// GoOn has a run go on that has ended: what is said of it begins again. It is for requests that
// the loop carries out, together with taskqueue.SetRun and the publication of what it returns.
func (e *Ending) GoOn() (publish []taskqueue.StoredFile) {
	publish = slices.SortedFunc(maps.Values(e.givenUp), func(a, b taskqueue.StoredFile) int {
		return cmp.Or(cmp.Compare(a.File.LFN, b.File.LFN), cmp.Compare(a.File.Version, b.File.Version))
	})
	clear(e.givenUp)
	clear(e.failures)
	e.problems.clear()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requested, e.phase, e.asked, e.fatal, e.publish = running, running, false, false, nil
	return publish
}

func (e *Ending) forgetOwed() {
	e.owedFiles = map[taskqueue.FileRef]taskqueue.StoredFile{}
	e.givenUp = map[taskqueue.FileRef]taskqueue.StoredFile{}
}

func (e *Ending) published(file taskqueue.FileRef) { delete(e.owedFiles, file) }

// observe takes note of jobs that failed, and of what pilots noticed.
func (e *Ending) observe(event *taskqueue.Event) {
	if event.Result != nil {
		for _, text := range event.Result.Notes {
			e.Note(fmt.Sprintf("job %s: %s", event.Name, text))
		}
	}
	if event.Kind == taskqueue.FileLost {
		e.Note(fmt.Sprintf("a stored file is lost, and made again by job %s when it is needed: %s", event.Name, event.Reason))
	}
	if event.Kind == taskqueue.CopyDiffers {
		e.Note(fmt.Sprintf("the cache of host %s holds other bytes of %s than another pilot has told of before: no host "+
			"reads them from there; one of the two has a bad disk, was given other bytes by the storage, or lies", event.Host,
			event.Reason))
	}
	switch event.Kind {
	case taskqueue.JobFailed:
		e.settle(event.Job) // a person has had it tried again
		e.failures[event.Job] = fmt.Sprintf("job %s failed: %s", event.Name, event.Reason)
		e.Problem(e.failures[event.Job])
	case taskqueue.JobCommitted:
		e.settle(event.Job)
	}
}

// settle takes back what was told of a job that has failed: it is done after all, or has failed anew.
func (e *Ending) settle(job taskqueue.JobID) {
	if text, failed := e.failures[job]; failed {
		e.problems.remove(text)
		delete(e.failures, job)
	}
}

// fail ends the run for a reason that no retry repairs. Its state stays.
func (e *Ending) fail(err error) {
	e.fatal = true
	e.Problem(err.Error())
}

// giveUp says that a result could not be put where it belongs.
func (e *Ending) giveUp(file taskqueue.FileRef, err error) {
	if stored, owed := e.owedFiles[file]; owed {
		e.givenUp[file] = stored
	}
	e.published(file)
	e.publish = err
	e.Problem(err.Error())
}

// lose says that what was to be published is lost. Pilots that leave make nothing again.
func (e *Ending) lose(file *taskqueue.LostFile) {
	e.published(file.File)
	if e.phase != running {
		e.Problem(fmt.Sprintf("%s is not published: %s; the next run makes it again", file.File.LFN, file.Why))
	}
}

// ToPublish counts the files that are still to be published. It is for questions that the
// loop answers.
func (e *Ending) ToPublish() int { return len(e.owedFiles) }

func (e *Ending) cutsShort() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fatal || e.requested > running
}

// repeat tells cores that were just loaded of an end that was under way. One to which the run had come
// by itself is found out anew, since what led to it may be lost.
func (e *Ending) repeat(l *Loop, run *Run) {
	switch {
	case e.phase == draining && !e.asked && !e.fatal:
		e.phase = running
	case e.isEnding():
		e.enter(l, run, e.phase)
	}
}

// advance is called after every turn of the loop in which something of the run changed, and moves
// on to the next phase if it is time.
func (e *Ending) advance(l *Loop, run *Run) {
	if e.phase == over {
		return
	}
	e.mu.Lock()
	requested := e.requested
	e.mu.Unlock()
	if requested > e.phase {
		e.asked = true
		e.enter(l, run, requested)
	}
	if e.phase == running && e.nothingToDo(l, run) {
		e.enter(l, run, draining)
	}
	if e.phase == running || !l.Lasting {
		return // a loop that is not Lasting is over with its run
	}
	if view, _ := l.Dispatch.Run(run.Run); view.State == taskqueue.RunEnded && len(e.owedFiles) == 0 && l.atRest() {
		e.phase = over
		l.Over(run)
	}
}

// enter begins a phase, and tells dispatch what becomes of the run. A run is complete only
// when all its jobs are known: what is temporary goes then, and jobs that are still to come may
// read it.
func (e *Ending) enter(l *Loop, run *Run, to phase) {
	e.phase = to
	var end taskqueue.Input = taskqueue.StopRun{Run: run.Run, Drain: to == draining}
	if to == draining && !e.asked && !e.fatal && run.Tally.Finished {
		end = taskqueue.CompleteRun{Run: run.Run}
	}
	if err := l.stepDispatch(end); err != nil {
		e.fail(fmt.Errorf("ending the run: %w", err))
		e.phase = over
	}
	l.propagate()
}

// nothingToDo reports whether no job can run any more, or none may.
func (e *Ending) nothingToDo(l *Loop, run *Run) bool {
	view, _ := l.Dispatch.Run(run.Run)
	if e.fatal || view.State != taskqueue.RunGoing {
		return true
	}
	totals := &view.Totals
	if totals.ByState[taskqueue.Waiting]+totals.ByState[taskqueue.Ready]+executing(totals) > 0 {
		return false
	}
	return run.Tally.Finished || run.InputsClosed() && run.wake.IsZero() && !run.Flow.Unfinished()
}

func executing(t *taskqueue.Totals) int {
	return t.ByState[taskqueue.Assigned] + t.ByState[taskqueue.Running]
}

// remarks are lines for a person, each once, in the order in which they came
// up, without those that were taken back. What comes when there are as many as the limit is counted. Any goroutine
// may use them: what is tidied up after the loop has ended is told, too, while
// somebody still watches.
type remarks struct {
	mu      sync.Mutex // guards lines and leftOut
	lines   []string
	leftOut int // beyond the limit; of two that are alike both count
}

func (r *remarks) add(text string, limit int) {
	text = strings.ToValidUTF8(text, "?") // it may name a file, and could not be sent otherwise
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case slices.Contains(r.lines, text):
	case len(r.lines) < limit:
		r.lines = append(r.lines, text)
	default:
		r.leftOut++
	}
}

// remove takes a line back, or one of those that were left out.
func (r *remarks) remove(text string) {
	text = strings.ToValidUTF8(text, "?")
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.Index(r.lines, text); at >= 0 {
		r.lines = slices.Delete(r.lines, at, at+1)
	} else {
		r.leftOut = max(0, r.leftOut-1)
	}
}

func (r *remarks) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines, r.leftOut = nil, 0
}

func (r *remarks) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// all is list and, if some were left out, a line made by a format of their number.
func (r *remarks) all(format string) []string {
	lines := r.list()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leftOut > 0 {
		lines = append(lines, fmt.Sprintf(format, r.leftOut))
	}
	return lines
}
