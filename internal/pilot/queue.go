package pilot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fairway/internal/fault"
	"fairway/internal/wire"
)

var (
	attemptAccepted = fault.New("pilot.attempt.accepted")
	attemptEnded    = fault.New("pilot.attempt.ended")
)

// attempt is one execution of a job, from its assignment until its result is
// recorded.
type attempt struct {
	*wire.Assignment
	needs  resources
	ctx    context.Context // ends when the attempt is to end
	end    context.CancelCauseFunc
	result *wire.Result
	slot   *slot
}

// assign takes an attempt into the local queue unless it is known.
func (p *pilot) assign(w *wire.Assignment) {
	id := w.GetAttempt()
	if p.known[id] != nil || p.reported(id) {
		return
	}
	a := &attempt{Assignment: w, needs: needsOf(w, &p.has)}
	a.ctx, a.end = context.WithCancelCause(p.jobs)
	p.known[id] = a
	p.queue = append(p.queue, a)
	_ = attemptAccepted.Hit()
}

func (a *attempt) ref() *wire.AttemptRef {
	return &wire.AttemptRef{Job: a.GetJob(), Attempt: a.GetAttempt()}
}

// reported says whether the attempt has ended and that is not acknowledged yet.
func (p *pilot) reported(id uint64) bool {
	return slices.ContainsFunc(p.reports.ended, func(t told[*wire.Result]) bool { return t.value.GetAttempt() == id })
}

// next takes the first attempt of the queue if it fits.
func (p *pilot) next() *attempt {
	if len(p.queue) == 0 || p.leaving {
		return nil
	}
	a := p.queue[0]
	if !p.free.fits(&a.needs) && p.running > 0 {
		return nil
	}
	p.queue = slices.Delete(p.queue, 0, 1)
	p.free.add(&a.needs, -1)
	p.running++
	p.reports.start(a.ref())
	return a
}

// startAll starts what fits. The caller holds the mutex.
func (p *pilot) startAll() {
	for a := p.next(); a != nil; a = p.next() {
		p.workers.Go(func() { p.work(a) })
	}
}

// work executes an attempt, and then those that take its place.
func (p *pilot) work(a *attempt) {
	var s *slot
	for a != nil {
		a.slot = s
		p.execute(a)
		s = a.slot
		a = p.finish(a)
		s = p.pass(s, a)
	}
}

// finish records the result and returns an attempt that may start in its place.
func (p *pilot) finish(a *attempt) *attempt {
	_ = attemptEnded.Hit()
	p.mu.Lock()
	defer p.mu.Unlock()
	a.end(nil)
	p.running--
	p.free.add(&a.needs, 1)
	delete(p.known, a.GetAttempt())
	p.reports.end(a.result)
	next := p.next()
	p.startAll()
	p.poke()
	return next
}

// endAttempt ends an attempt, or recalls it if it has not started. One that is
// not known any more has ended already.
func (p *pilot) endAttempt(id uint64) {
	a := p.known[id]
	switch {
	case a == nil:
	case p.isQueued(a):
		p.recall(a, wire.Outcome_OUTCOME_ENDED, "recalled before it started")
	default:
		a.stop(wire.Outcome_OUTCOME_ENDED, "ended by the TaskQueue")
	}
}

func (p *pilot) isQueued(a *attempt) bool { return slices.Contains(p.queue, a) }

func (p *pilot) recall(a *attempt, outcome wire.Outcome, why string) {
	p.queue = slices.DeleteFunc(p.queue, func(b *attempt) bool { return a == b })
	delete(p.known, a.GetAttempt())
	a.end(nil)
	p.reports.end(&wire.Result{Job: a.GetJob(), Attempt: a.GetAttempt(), Outcome: outcome, Message: why})
}

// loseAll ends everything that runs and gives back what does not, because the
// pilot ends.
func (p *pilot) loseAll(why string) {
	for _, a := range slices.Clone(p.queue) {
		p.recall(a, wire.Outcome_OUTCOME_LOST, why)
	}
	for _, a := range p.known {
		a.stop(wire.Outcome_OUTCOME_LOST, why)
	}
}

// stopped is why an attempt was ended before its time.
type stopped struct {
	outcome wire.Outcome
	why     string
}

func (s *stopped) Error() string { return s.why }

// stop ends the attempt; the first reason stands. Any goroutine may call it.
func (a *attempt) stop(outcome wire.Outcome, why string) { a.end(&stopped{outcome, why}) }

// stopReason is that of the first stop, nil before.
func (a *attempt) stopReason() *stopped {
	var s *stopped
	if errors.As(context.Cause(a.ctx), &s) {
		return s
	}
	return nil
}

// fail sets an outcome that is not a success; the first one stands.
func (a *attempt) fail(outcome wire.Outcome, format string, args ...any) {
	if a.result.GetOutcome() == wire.Outcome_OUTCOME_SUCCEEDED {
		a.result.Outcome = outcome
		a.result.Message = firstLine(fmt.Sprintf(format, args...))
	}
}

func (a *attempt) failed() bool { return a.result.GetOutcome() != wire.Outcome_OUTCOME_SUCCEEDED }
