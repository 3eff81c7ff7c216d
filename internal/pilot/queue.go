package pilot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/access"
	"fairway/internal/fault"
	"fairway/internal/pilot/gpu"
	"fairway/internal/pilot/process"
	"fairway/internal/pilot/report"
	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

var (
	attemptAccepted = fault.New("pilot.attempt.accepted")
	attemptEnded    = fault.New("pilot.attempt.ended")
)

// attempt is one execution of a job, from its assignment until its result is
// recorded.
type attempt struct {
	stage.Execution
	needs   resources
	end     context.CancelCauseFunc
	before  *attempt // whose place it took, until that one is told
	shared  bool     // processes may be left that have what it had open
	direct  bool     // its command needs no shell
	lacking string   // a variable that it was not told; empty: none
	inside  *inside  // in what its command runs besides; nil: in nothing
	told    []string // what a worker of its step is told, in the place of a command
	logs    liveLogs
	member  *membership // nil: it is of no gang
	states  uint32      // that its command has saved and that were stored; of who runs it

	// The pilot's mutex guards what follows.
	queued    bool              // it waits in the queue
	recalled  bool              // it was taken out of the queue and will not run
	preparing bool              // its sandbox is prepared before its turn
	ready     bool              // that is done
	cold      bool              // that cannot be done
	hasDisk   bool              // it was given the disk that it needs
	yielded   bool              // it has given back what its command needed
	begun     bool              // its command has been let start
	over      bool              // and has ended
	state     *wire.WrittenFile // the last one that its command has saved

	givenGPUs
	turn        time.Time     // when it was taken out of the queue to run
	stagedAhead time.Duration // of its stage-in, before that
}

// givenGPUs are the GPUs that an attempt has from its turn on until its command has ended, or why it has
// none.
type givenGPUs struct {
	gpus   *gpu.Given
	noGPUs error
}

// assign takes an attempt into the local queue, in the order in which they take their turns,
// unless it is known, or has ended and that is not acknowledged yet.
func (p *pilot) assign(w *wire.Assignment) {
	id := w.GetAttempt()
	if p.known[id] != nil || p.reports.HasEnded(id) {
		return
	}
	payload := new(wire.Payload)
	if err := proto.Unmarshal(w.GetPayload(), payload); err != nil {
		p.log.Error("a command cannot be read, and fails", "attempt", id, "error", err)
		payload = new(wire.Payload)
	}
	lacking := p.giveVariables(payload)
	payload.Strict = payload.Strict || p.cfg.Sandbox == SandboxStrict
	a := &attempt{Execution: stage.Execution{Assignment: w, Payload: payload}, needs: needsOf(w, &p.has), queued: true,
		lacking: lacking}
	a.Ctx, a.end = context.WithCancelCause(p.jobs)
	if w.GetGang() != nil {
		a.member = &membership{told: make(chan struct{})}
	}
	p.known[id] = a
	// Before those of lower priority; one that is being prepared keeps its sandbox.
	at := len(p.queue)
	for at > 0 && p.queue[at-1].GetPriority() < w.GetPriority() {
		at--
	}
	p.queue = slices.Insert(p.queue, at, a)
	_ = attemptAccepted.Hit()
}

func (a *attempt) ref() *wire.AttemptRef {
	return &wire.AttemptRef{
		Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt(), Ticket: a.GetTicket(),
		Leader: a.GetGang().GetLeader(), Task: a.GetGang().GetTask(),
	}
}

// next takes the first attempt of the queue if it fits. While the TaskQueue does not know that one has
// failed here, none begins: the node may be to blame, and would fail them all.
func (p *pilot) next() *attempt {
	if len(p.queue) == 0 || p.leaving || p.reports.HasFailures() && !p.exchange.away {
		return nil
	}
	a := p.queue[0]
	lacks := &a.needs // what it has not been given yet
	if a.hasDisk {
		lacks = a.needs.processing()
	}
	if p.running > 0 && (!p.free.fits(lacks) || !a.hasDisk && !p.roomFor(a)) {
		return nil
	}
	if !p.takeGPUs(a) {
		return nil
	}
	p.queue = slices.Delete(p.queue, 0, 1)
	p.free.add(lacks, -1)
	a.queued, a.hasDisk, a.turn = false, true, time.Now()
	p.running++
	p.reports.Start(a.ref(), a.turn)
	return a
}

// roomFor reports whether the disk that an attempt needs is free now: others, which the pilot does
// not know, may fill it too.
func (p *pilot) roomFor(a *attempt) bool {
	if a.needs.disk == 0 {
		return true
	}
	free, all := process.SpaceOf(p.stage.Folder)
	return all == 0 || free >= a.needs.disk
}

// startAll starts what fits, and prepares what comes after it. The caller holds
// the mutex.
func (p *pilot) startAll() {
	p.startFitting()
	for a := p.nextToPrepare(); a != nil; a = p.nextToPrepare() {
		p.workers.Go(func() { p.prepareAhead(a, nil) })
	}
}

// startFitting starts what fits. An attempt that is just being prepared goes on
// by itself.
func (p *pilot) startFitting() {
	for a := p.next(); a != nil; a = p.next() {
		if a.ready || !a.preparing {
			p.workers.Go(func() { p.work(a) })
		}
	}
}

// work executes an attempt, and then those that take its place. What one has
// left is concluded when the command of the next one has started.
func (p *pilot) work(a *attempt) {
	for {
		p.execute(a)
		p.concludePrevious(a) // unless it has come to a command
		next := p.yield(a)
		if next == nil {
			p.conclude(a)
			return
		}
		next.before = a
		a = next
	}
}

// concludePrevious concludes the attempt whose place this one took. One that has
// written something is concluded by another goroutine: storing may take long, and
// the end of this one's command is not to wait for it. For the others a
// goroutine would cost more than it does.
func (p *pilot) concludePrevious(a *attempt) {
	ended := a.before
	a.before = nil
	switch {
	case ended == nil:
	case ended.Slot == nil || ended.Slot.SeenEmpty(!ended.shared):
		p.conclude(ended)
	default:
		p.workers.Go(func() { p.conclude(ended) })
	}
}

// yield gives back what a command needed to run, so that the next one starts
// before what this one has written is stored, and returns it if it can start
// at once. While as many others are being concluded as the pilot has slots, the attempt
// keeps what it has until it is concluded too. So does one that has failed: nothing begins before that is
// known.
func (p *pilot) yield(a *attempt) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.concluding >= p.has.slots() || report.Blames(a.Result) {
		return nil
	}
	p.concluding++
	a.yielded = true
	p.giveBackGPUs(a)
	p.free.add(a.needs.processing(), 1)
	next := p.next()
	p.startFitting()
	if next != nil && next.preparing && !next.ready {
		return nil
	}
	return next
}

// conclude stores what an attempt has written, records its result, and prepares
// another one in its sandbox.
func (p *pilot) conclude(a *attempt) {
	p.deliver(a)
	next := p.finish(a)
	if next == nil {
		p.stage.Pass(a.Slot, nil)
		return
	}
	p.prepareAhead(next, p.stage.Pass(a.Slot, &next.Execution))
}

// finish records the result. It returns an attempt to prepare in the sandbox.
func (p *pilot) finish(a *attempt) *attempt {
	_ = attemptEnded.Hit()
	p.mu.Lock()
	defer p.mu.Unlock()
	a.end(nil)
	p.running--
	p.giveBackGPUs(a)
	if a.yielded {
		p.concluding--
		p.free.disk += a.needs.disk
	} else {
		p.free.add(&a.needs, 1)
	}
	if a.In != nil {
		a.stagedAhead += a.In.Ahead(a.turn)
	}
	if a.stagedAhead > 0 {
		a.Result.Usage.StagedAhead = durationpb.New(a.stagedAhead)
	}
	delete(p.known, a.GetAttempt())
	p.reports.End(a.Result, a.GetTicket())
	if p.exchange.away {
		p.spoolUntold()
	}
	p.startFitting()
	next := p.nextToPrepare()
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
	case a.queued:
		p.recall(a, wire.Outcome_OUTCOME_ENDED, "recalled before it started")
	default:
		a.stop(wire.Outcome_OUTCOME_ENDED, "ended by the TaskQueue")
	}
}

// giveBack ends an attempt, unless its command has begun.
func (p *pilot) giveBack(a *attempt) {
	switch {
	case a == nil || a.begun:
	case a.queued:
		p.recall(a, wire.Outcome_OUTCOME_ENDED, "recalled before it started")
	default:
		a.stop(wire.Outcome_OUTCOME_ENDED, "recalled before its command started")
	}
}

func (p *pilot) recall(a *attempt, outcome wire.Outcome, why string) {
	p.queue = slices.DeleteFunc(p.queue, func(b *attempt) bool { return a == b })
	delete(p.known, a.GetAttempt())
	a.end(nil)
	a.queued, a.recalled = false, true
	if a.hasDisk {
		p.free.disk += a.needs.disk
	}
	if a.ready {
		p.workers.Go(func() { p.clear(a) })
	}
	r := a.emptyResult()
	r.Usage, r.Outcome, r.Message = nil, outcome, why
	p.reports.End(r, a.GetTicket())
}

func (p *pilot) begin(a *attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.begun = a.stopReason() == nil
	return a.begun
}

func (p *pilot) isOver(a *attempt) {
	if !a.isLimited() {
		return // nobody asks
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a.over = true
}

func (a *attempt) isLimited() bool { return a.GetNeeds().GetTime().AsDuration() > 0 }

// movingFiles lists the attempts with a limit of time that read inputs or store outputs: that time is not
// their command's, and the TaskQueue does not count it. The caller holds the mutex.
func (p *pilot) movingFiles() (attempts []uint64) {
	for id, a := range p.known {
		if !a.queued && a.begun == a.over && a.isLimited() && len(attempts) < access.MaxAttempts {
			attempts = append(attempts, id)
		}
	}
	return attempts
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
	if s, ok := errors.AsType[*stopped](context.Cause(a.Ctx)); ok {
		return s
	}
	return nil
}

// fail sets an outcome that is not a success; the first one stands.
func (a *attempt) fail(outcome wire.Outcome, format string, args ...any) {
	if a.Result.GetOutcome() == wire.Outcome_OUTCOME_SUCCEEDED {
		a.Result.Outcome = outcome
		a.Result.Message = report.FirstLine(fmt.Sprintf(format, args...))
	}
}

func (a *attempt) failed() bool { return a.Result.GetOutcome() != wire.Outcome_OUTCOME_SUCCEEDED }
