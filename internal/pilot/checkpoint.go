package pilot

import (
	"context"
	"time"

	"fairway/internal/wire"
)

// A job with a checkpoint saves its state in a folder by itself: when it is told to end, or at
// FAIRWAY_DEADLINE before that. An attempt that is ended before its time brings the folder with
// its result, and the next attempt begins with it.

// SavingShare, one part in so many, of the life of a pilot, and MaxSavingTime at most, is left for
// attempts to be ended and their checkpoints to be stored.
const (
	SavingShare   = 50
	MaxSavingTime = 5 * time.Minute
)

// saveBy is when attempts that have a checkpoint are ended, as the pilot's life is nearly over.
func (p *pilot) saveBy() time.Time {
	return p.lifeEnds.Add(-min(p.cfg.Life/SavingShare, MaxSavingTime))
}

// endInTimeToSave ends the attempts that have a checkpoint, and takes no more jobs then: these
// would be the next to end.
func (p *pilot) endInTimeToSave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.known {
		if a.GetCheckpoint() == nil || a.queued {
			continue
		}
		p.draining = true
		a.stop(wire.Outcome_OUTCOME_LOST, "the pilot's life is nearly over")
	}
	p.reports.News = true
	p.poke()
}

// saveCheckpoint stores the folder of an attempt that was ended before its time. It has
// MaxSavingTime for that, though the attempt itself is over.
func (p *pilot) saveCheckpoint(a *attempt) {
	reason := a.stopReason()
	if a.GetCheckpoint() == nil || !a.begun || reason == nil || !mayGoOn(reason.outcome) {
		return
	}
	ctx, cancel := context.WithTimeout(p.jobs, MaxSavingTime)
	defer cancel()
	saving := a.Execution
	saving.Ctx = ctx
	if err := p.stage.StoreCheckpoint(&saving); err != nil {
		a.Note("its checkpoint could not be saved: " + err.Error())
		p.log.Warn("a checkpoint could not be saved", "attempt", a.GetAttempt(), "error", err)
	}
}

// mayGoOn reports whether the next attempt may go on where one of this outcome was.
func mayGoOn(o wire.Outcome) bool {
	return o == wire.Outcome_OUTCOME_LOST || o == wire.Outcome_OUTCOME_ENDED || o == wire.Outcome_OUTCOME_OUT_OF_TIME
}
