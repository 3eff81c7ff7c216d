package pilot

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/cache"
	"fairway/internal/pilot/process"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// execute runs the command of an attempt. Its stage-in counts from its turn on,
// also where it was done before.
func (p *pilot) execute(a *attempt) {
	began := timestamppb.Now()
	if !a.ready || a.in.spoilt() {
		p.concludePrevious(a)
		p.stageInNow(a)
	}
	a.result.Usage.StageInStart = began
	if a.failed() {
		return
	}
	if !p.begin(a) {
		reason := a.stopReason()
		a.fail(reason.outcome, "%s", reason.why)
		return
	}
	a.result.Usage.Start = timestamppb.Now()
	if a.GetPayload().GetReplay() != nil {
		p.concludePrevious(a)
		p.replay(a)
	} else {
		p.command(a)
	}
	a.result.Usage.End = timestamppb.Now()
	a.in.checkUnchanged() // before the next one reads the same files
}

// stageInNow makes the sandbox ready of an attempt whose turn has come, anew if
// its inputs were written to after they were staged in before.
func (p *pilot) stageInNow(a *attempt) {
	var s *slot
	if a.ready {
		p.leave(a)
		s = p.pass(a.slot, a)
	}
	a.in = &stageIn{pilot: p, attempt: a}
	p.makeReady(a, s)
}

// makeReady makes a sandbox as the command is to find it, in a slot that is
// free or, where s is nil, in another one.
func (p *pilot) makeReady(a *attempt, s *slot) {
	a.result = &wire.Result{Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt(), Usage: &wire.Usage{}}
	if s == nil {
		var err error
		if s, err = p.takeSlot(); err != nil {
			s.close()
			a.failBy(wire.Outcome_OUTCOME_STAGE_IN_FAILED, err)
			return
		}
	}
	a.slot = s
	s.bare = false
	if err := a.in.run(); err != nil {
		a.failBy(wire.Outcome_OUTCOME_STAGE_IN_FAILED, err)
	}
}

// deliver keeps what a command has printed and, if it ended well, written.
func (p *pilot) deliver(a *attempt) {
	if a.slot != nil {
		p.keepLogs(a)
	}
	if !a.failed() {
		if err := p.stageOut(a); err != nil {
			a.failBy(wire.Outcome_OUTCOME_STAGE_OUT_FAILED, err)
		}
		a.result.Usage.StageOutEnd = timestamppb.Now()
	}
	p.keepLog(a)
	p.sendLogs(a)
	p.leave(a)
	if reason := a.stopReason(); reason != nil && a.failed() {
		a.result.Outcome, a.result.Message = reason.outcome, reason.why
	}
	p.keepSandbox(a)
}

// failBy sets the outcome by an error, which may say better than the place
// where it came up what went wrong.
func (a *attempt) failBy(outcome wire.Outcome, err error) {
	var missing *missingOutput
	var changed *changedError
	var lost *lostError
	switch {
	case errors.As(err, &lost):
		outcome = wire.Outcome_OUTCOME_INPUT_LOST
	case errors.As(err, &changed):
		outcome = wire.Outcome_OUTCOME_INPUT_CHANGED
	case outOfDisk(err):
		outcome = wire.Outcome_OUTCOME_OUT_OF_DISK
	case errors.As(err, &missing):
		outcome = wire.Outcome_OUTCOME_MISSING_OUTPUT
	}
	a.fail(outcome, "%v", err)
	if lost != nil && lost.file.GetPfn() != "" && a.result.GetOutcome() == wire.Outcome_OUTCOME_INPUT_LOST {
		a.result.Lost = append(a.result.Lost, lost.file)
	}
	if a.failed() {
		a.result.Outputs = nil
	}
}

func outOfDisk(err error) bool {
	return errors.Is(err, storage.ErrNoSpace) || errors.Is(err, cache.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// used notes what the command has taken.
func (a *attempt) used(rusage *syscall.Rusage) {
	cpu := time.Duration(rusage.Utime.Nano() + rusage.Stime.Nano())
	a.result.Usage.Cpu = durationpb.New(cpu)
	if process.AboveOwn(rusage.Maxrss) {
		a.result.Usage.MaxRssBytes = max(a.result.Usage.GetMaxRssBytes(), rusage.Maxrss<<10)
	}
}
