package pilot

import (
	"cmp"
	"context"
	"slices"
	"time"

	"fairway/internal/pilot/stage"
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
	if !a.savesState() || !a.begun || reason == nil || !mayGoOn(reason.outcome) {
		return
	}
	ctx, cancel := context.WithTimeout(p.jobs, MaxSavingTime)
	defer cancel()
	saving := a.Execution
	saving.Ctx = ctx
	if err := p.stage.StoreCheckpoint(&saving, a.states+1); err != nil {
		a.Note("its checkpoint could not be saved: " + err.Error())
		p.log.Warn("a checkpoint could not be saved", "attempt", a.GetAttempt(), "error", err)
	}
}

func (a *attempt) savesState() bool { return a.GetCheckpoint() != nil && a.isFirst() }

// markPause is how often a pilot looks whether a command has saved a whole state.
const markPause = time.Second

// followMark stores what a command saves while it runs, each time that it marks a state as whole: so
// it outlives the node. The TaskQueue hears of the last one.
func (p *pilot) followMark(ctx context.Context, a *attempt) {
	var last stage.MarkID
	saving := a.Execution
	saving.Ctx = ctx
	for p.sched.Sleep(ctx, markPause) == nil {
		mark := saving.Mark()
		if mark == (stage.MarkID{}) || mark == last {
			continue
		}
		last = mark
		out, err := p.stage.StoreMarked(&saving, a.states+1)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.log.Warn("a state of a job that runs could not be stored", "attempt", a.GetAttempt(), "error", err)
			continue
		}
		p.mu.Lock()
		a.states++
		a.state = out
		p.reports.News = true
		p.poke()
		p.mu.Unlock()
	}
}

// runSaving runs f, the command of an attempt, and stores meanwhile what it saves.
func (p *pilot) runSaving(a *attempt, f func(a *attempt)) {
	if !a.savesState() {
		f(a)
		return
	}
	ctx, end := context.WithCancel(a.Ctx)
	ended := make(chan struct{})
	p.workers.Go(func() {
		defer close(ended)
		p.followMark(ctx, a)
	})
	f(a)
	end()
	<-ended
}

// savedStates tells of the last state that each command here has saved. The caller holds the mutex.
func (p *pilot) savedStates(m *wire.SyncRequest) {
	for _, a := range p.known {
		if a.state != nil {
			m.Saved = append(m.Saved, &wire.SavedState{Of: a.ref(), File: a.state})
		}
	}
	slices.SortFunc(m.Saved, func(a, b *wire.SavedState) int {
		return cmp.Compare(a.GetOf().GetAttempt(), b.GetOf().GetAttempt())
	})
}

// mayGoOn reports whether the next attempt may go on where one of this outcome was.
func mayGoOn(o wire.Outcome) bool {
	return o == wire.Outcome_OUTCOME_LOST || o == wire.Outcome_OUTCOME_ENDED || o == wire.Outcome_OUTCOME_OUT_OF_TIME
}
