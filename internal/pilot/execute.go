package pilot

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/cache"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// execute does all that an attempt asks for and leaves its result.
func (p *pilot) execute(a *attempt) {
	now := timestamppb.Now()
	a.result = &wire.Result{Job: a.GetJob(), Attempt: a.GetAttempt(), Usage: &wire.Usage{StageInStart: now}}
	if a.slot == nil {
		var err error
		if a.slot, err = p.takeSlot(); err != nil {
			a.slot.close()
			a.slot = nil
			a.failBy(wire.Outcome_OUTCOME_STAGE_IN_FAILED, err)
			return
		}
	}
	p.inSandbox(a)
	if reason := a.stopReason(); reason != nil && !(a.result.GetOutcome() == wire.Outcome_OUTCOME_SUCCEEDED) {
		a.result.Outcome, a.result.Message = reason.outcome, reason.why
	}
}

func (p *pilot) inSandbox(a *attempt) {
	in := &stageIn{pilot: p, attempt: a}
	defer func() {
		in.release()
		a.slot.staged = in.files
	}()
	if err := in.run(); err != nil {
		a.failBy(wire.Outcome_OUTCOME_STAGE_IN_FAILED, err)
		return
	}
	u := a.result.Usage
	u.Start = timestamppb.Now()
	if a.GetPayload().GetReplay() != nil {
		p.replay(a, in)
	} else {
		p.command(a, in)
	}
	u.End = timestamppb.Now()
	in.checkUnchanged()
	if a.failed() {
		return
	}
	if err := p.stageOut(a, in); err != nil {
		a.failBy(wire.Outcome_OUTCOME_STAGE_OUT_FAILED, err)
	}
	u.StageOutEnd = timestamppb.Now()
}

// failBy sets the outcome by an error, which may say better than the place
// where it came up what went wrong.
func (a *attempt) failBy(outcome wire.Outcome, err error) {
	var missing *missingOutput
	switch {
	case outOfDisk(err):
		outcome = wire.Outcome_OUTCOME_OUT_OF_DISK
	case errors.As(err, &missing):
		outcome = wire.Outcome_OUTCOME_MISSING_OUTPUT
	}
	a.fail(outcome, "%v", err)
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
	if rusage.Maxrss > ownPeak() {
		a.result.Usage.MaxRssBytes = max(a.result.Usage.GetMaxRssBytes(), rusage.Maxrss<<10)
	}
}

// ownPeak is the most memory that the pilot itself had, in KiB. The kernel
// counts it for a process that the pilot starts as well, from before the
// program took its place, so that of a command nothing below is known.
func ownPeak() int64 {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	return own.Maxrss
}
