package pilot

import (
	"time"

	"fairway/internal/pilot/stage"
	"fairway/internal/wire"
)

// While commands run, the pilot prepares the sandboxes of the attempts that
// come next, as many as it has slots, so that they start as soon as there is
// room. That costs neither time nor room on other nodes: only attempts whose
// inputs are all in the cache are prepared before their turn.

// nextToPrepare returns an attempt to prepare before its turn, nil if there is
// none now. Disk is given in the order of the queue. The caller holds the mutex.
func (p *pilot) nextToPrepare() *attempt {
	if p.leaving {
		return nil
	}
	for _, a := range p.queue[:min(len(p.queue), p.has.slots())] {
		switch {
		case a.preparing:
			continue
		case a.cold || a.needs.disk > p.free.disk || !p.roomFor(a):
			return nil
		}
		a.preparing, a.hasDisk = true, true
		p.free.disk -= a.needs.disk
		return a
	}
	return nil
}

// prepareAhead makes the sandbox of an attempt ready before its turn, in a slot that
// is free for it or, where s is nil, in another one. If its turn comes
// meanwhile it is executed.
func (p *pilot) prepareAhead(a *attempt, s *stage.Slot) {
	began := time.Now()
	a.In = stage.NewInputs(p.stage, &a.Execution)
	warm := a.In.TakeCached()
	if warm {
		p.makeReady(a, s)
	} else {
		p.stage.Pass(s, nil)
	}
	p.mu.Lock()
	a.preparing, a.ready, a.cold = warm, warm, !warm
	a.wasStagedAhead(began)
	queued, recalled := a.queued, a.recalled
	p.mu.Unlock()
	switch {
	case recalled:
		p.clear(a)
	case !queued:
		p.workers.Go(func() { p.work(a) })
	}
}

// wasStagedAhead notes that something was done for an attempt since a moment: what came
// before its turn delayed nobody. The caller holds the mutex.
func (a *attempt) wasStagedAhead(since time.Time) {
	until := time.Now()
	if !a.queued {
		until = a.turn
	}
	a.stagedAhead += max(0, until.Sub(since))
}

func (p *pilot) clear(a *attempt) {
	p.releaseInputs(a)
	p.stage.Pass(a.Slot, nil)
}

func (p *pilot) releaseInputs(a *attempt) {
	a.In.Release()
	p.removeUnusedFolders()
}

func (p *pilot) removeUnusedFolders() {
	if !p.stage.HasFolders() {
		return
	}
	var awaited []*wire.InputFile
	p.mu.Lock()
	for _, a := range p.queue {
		awaited = append(awaited, a.GetInputs()...)
	}
	p.mu.Unlock()
	p.stage.RemoveUnusedFolders(awaited)
}
