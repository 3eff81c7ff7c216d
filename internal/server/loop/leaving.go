package loop

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// Leaving decides when the pilots leave, and when the loop is over: with its run or, if it is
// Lasting, when a person ends it. Runs that are under way then go on in the next server. It
// outlives the cores.
type Leaving struct {
	mu        sync.Mutex // guards requested
	requested phase      // the phase that a person asks for; it is never taken back

	// All that follows belongs to the loop, and may be read when it has ended.

	phase phase

	// Removals that were let out, or will be, and are not confirmed, by PFN. They are those of
	// the cores, and forgotten with them.
	owedRemovals map[string]bool

	// Pilots that do not leave: leaveBy is when they are withdrawn, zero while that is
	// not decided; withdrawn says that they were, abandoned that they have not left
	// then either: closing the batch system ends what hears no signal.
	leaveBy   time.Time
	tellAt    time.Time // when a person is told whom the end waits for; zero: that was told, or is not yet decided
	withdrawn bool
	abandoned bool
}

// slowLeave is how long pilots may take to leave until a person is told that the end waits for
// them, or LeaveTime if that is less; slowEnd, if all is to end at once.
const (
	slowLeave = 2 * time.Second
	slowEnd   = time.Second
)

// maxAwaitedNamed is how many pilots a person is told of by name that do not leave.
const maxAwaitedNamed = 3

func newLeaving() *Leaving {
	v := new(Leaving)
	v.forgetOwed()
	return v
}

func (v *Leaving) forgetOwed() { v.owedRemovals = map[string]bool{} }

// Request has the loop end, whatever its runs: with drain after what runs, else at once. The
// loop sees it at its next turn. Any goroutine may call it.
func (v *Leaving) Request(drain bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	to := leaving
	if drain {
		to = draining
	}
	v.requested = max(v.requested, to)
}

func (v *Leaving) asked() phase {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requested
}

// Abandoned reports, when the loop has ended, whether pilots are left that hear
// nothing.
func (v *Leaving) Abandoned() bool { return v.abandoned }

// wanted is the phase that it is time for: of a loop that is not Lasting, that of its run.
func (v *Leaving) wanted(l *Loop) phase {
	to := v.asked()
	if l.Lasting {
		return to
	}
	for _, run := range l.runs {
		to = max(to, run.Ending.phase)
	}
	return to
}

// repeat tells cores that were just loaded of an end that was under way.
func (v *Leaving) repeat(l *Loop) {
	if v.phase != running {
		v.enter(l, v.phase)
	}
}

// advance is called after every turn of the loop, and moves on to the next phase
// if it is time.
func (v *Leaving) advance(l *Loop) {
	if to := v.wanted(l); to > v.phase {
		v.enter(l, to)
	}
	if v.phase == running || v.phase == over {
		return
	}
	v.hurry(l)
	if (v.abandoned || l.Pilots.None()) && !l.owes() && l.atRest() {
		v.phase = over
	}
}

// enter begins a phase, and tells dispatch that the pilots are to leave.
func (v *Leaving) enter(l *Loop, to phase) {
	v.phase, v.leaveBy = to, time.Time{}
	if to == over {
		return
	}
	if err := l.stepDispatch(taskqueue.Stop{Drain: to == draining}); err != nil {
		l.fail(fmt.Errorf("ending the pilots: %w", err))
		v.phase = over
	}
	l.propagate()
}

// atRest reports whether all that was stepped has been let out.
func (l *Loop) atRest() bool { return l.flying == nil && l.gathering.empty() }

// owes reports whether something that was let out, or will be, is not confirmed.
func (l *Loop) owes() bool {
	for _, run := range l.runs {
		if len(run.Ending.owedFiles) > 0 {
			return true
		}
	}
	return len(l.Leaving.owedRemovals) > 0
}

// hurry withdraws pilots that should have left: they run nothing any more, or
// were told to end it, and LeaveTime has passed since. Results that are still
// being published are waited for, however long that takes.
func (v *Leaving) hurry(l *Loop) {
	totals := l.Dispatch.Totals()
	if v.abandoned || v.phase == draining && executing(&totals) > 0 || l.Pilots.None() {
		return
	}
	now := state.Now()
	if v.leaveBy.IsZero() {
		slow := slowLeave
		if v.phase == leaving {
			slow = slowEnd
		}
		v.leaveBy, v.tellAt = now.Add(l.LeaveTime), now.Add(min(slow, l.LeaveTime))
		l.waker.want(byLeaving, v.tellAt)
	}
	if !v.tellAt.IsZero() && !now.Before(v.tellAt) {
		v.tellAt = time.Time{}
		v.tell(l, v.leaveBy.Sub(now))
		l.waker.want(byLeaving, v.leaveBy)
	}
	if now.Before(v.leaveBy) {
		return
	}
	if v.withdrawn {
		v.abandoned = true
		return
	}
	v.withdrawn = true
	v.leaveBy = now.Add(l.LeaveTime)
	l.waker.want(byLeaving, v.leaveBy)
	l.Pilots.Withdraw(l.Pilots.Launches())
}

// tell says whom the end waits for, and until when at most.
func (v *Leaving) tell(l *Loop, left time.Duration) {
	names := l.Pilots.Awaited()
	if more := len(names) - maxAwaitedNamed; more > 0 {
		names = append(names[:maxAwaitedNamed], fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("the end waits for pilots that have not left: %s; their batch systems end them in %v, and it "+
		"goes on without them %v later", strings.Join(names, ", "), left.Round(time.Second), l.LeaveTime)
	if l.Lasting {
		l.Log.Warn(text)
	}
	for _, run := range l.runs {
		run.Ending.Note(text)
	}
}
