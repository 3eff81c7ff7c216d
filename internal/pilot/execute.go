package pilot

import (
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/pilot/process"
	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

// execute runs the command of an attempt. Its stage-in counts from its turn on,
// also where it was done before.
func (p *pilot) execute(a *attempt) {
	if !a.ready || a.In.Spoilt() {
		p.concludePrevious(a)
		p.stageInNow(a)
	}
	a.Result.Usage.StageInStart = timestamppb.New(a.turn)
	if a.failed() {
		return
	}
	if a.member != nil && !p.joinGang(a) {
		return
	}
	if !p.begin(a) {
		reason := a.stopReason()
		a.fail(reason.outcome, "%s", reason.why)
		return
	}
	a.Result.Usage.Start = a.moment()
	if a.Payload.GetReplay() != nil {
		p.concludePrevious(a)
		p.replay(a)
	} else {
		p.runSaving(a, p.command)
	}
	a.Result.Usage.End = a.moment()
	p.isOver(a)
	a.In.CheckUnchanged() // before the next one reads the same files
}

// moment is now, by a clock that nobody sets while the attempt runs: its times tell how long
// its parts took, and the TaskQueue expects the same of others.
func (a *attempt) moment() *timestamppb.Timestamp {
	return timestamppb.New(a.turn.Add(time.Since(a.turn)))
}

// stageInNow makes the sandbox ready of an attempt whose turn has come, anew if
// its inputs were written to after they were staged in before.
func (p *pilot) stageInNow(a *attempt) {
	var s *stage.Slot
	if a.ready {
		p.releaseInputs(a)
		s = p.stage.Pass(a.Slot, &a.Execution)
	}
	a.In = stage.NewInputs(p.stage, &a.Execution)
	p.makeReady(a, s)
}

// makeReady makes a sandbox as the command is to find it, in a slot that is
// free or, where s is nil, in another one.
func (p *pilot) makeReady(a *attempt, s *stage.Slot) {
	a.Result = a.emptyResult()
	if s == nil {
		var err error
		if s, err = p.stage.TakeSlot(&a.Execution); err != nil {
			s.Close()
			a.failBy(wire.Outcome_OUTCOME_STAGE_IN_FAILED, err)
			return
		}
	}
	a.Slot = s
	if err := a.In.StageIn(); err != nil {
		a.failBy(wire.Outcome_OUTCOME_STAGE_IN_FAILED, err)
	}
}

func (a *attempt) emptyResult() *wire.Result {
	return &wire.Result{
		Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt(), Usage: &wire.Usage{},
		Leader: a.GetGang().GetLeader(), Task: a.GetGang().GetTask(),
	}
}

// deliver keeps what a command has printed and, if it ended well, written.
func (p *pilot) deliver(a *attempt) {
	if a.Slot != nil {
		p.closeLogs(a)
	}
	if a.begun && a.In != nil {
		a.In.CheckStreamed()
	}
	if !a.failed() && a.isFirst() {
		if err := p.stage.StageOut(&a.Execution); err != nil {
			a.failBy(wire.Outcome_OUTCOME_STAGE_OUT_FAILED, err)
		}
		p.noteUnkept(a)
		a.Result.Usage.StageOutEnd = a.moment()
	}
	p.saveCheckpoint(a)
	p.keepLog(a)
	p.sendLogs(a)
	p.releaseInputs(a)
	if reason := a.stopReason(); reason != nil && a.failed() {
		a.Result.Outcome, a.Result.Message = reason.outcome, reason.why
	}
	p.keepSandbox(a)
}

// failBy sets the outcome by an error, which may say better than the place
// where it came up what went wrong.
func (a *attempt) failBy(outcome wire.Outcome, err error) {
	outcome, lost := stage.OutcomeOf(err, outcome)
	a.fail(outcome, "%v", err)
	if lost != nil && a.Result.GetOutcome() == wire.Outcome_OUTCOME_INPUT_LOST {
		a.Result.Lost = append(a.Result.Lost, lost)
	}
	if a.failed() {
		a.Result.Outputs = nil
	}
}

func (a *attempt) used(rusage *syscall.Rusage) {
	cpu := time.Duration(rusage.Utime.Nano() + rusage.Stime.Nano())
	a.Result.Usage.Cpu = durationpb.New(cpu)
	if process.AboveOwn(rusage.Maxrss) {
		a.Result.Usage.MaxRssBytes = max(a.Result.Usage.GetMaxRssBytes(), rusage.Maxrss<<10)
	}
}
