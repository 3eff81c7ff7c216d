package state

import (
	"time"

	"fairway/internal/dispatch"
)

// pace tells from the attempts that ended how long the rest of a run may take.
// It belongs to the loop, and begins again with each server.
type pace struct {
	steps map[string]stepPace
	busy  time.Duration // of all steps
	first time.Time     // when the first of the attempts started
}

// stepPace is what the attempts of a step took that succeeded.
type stepPace struct {
	count int
	busy  time.Duration // staging and computing
}

func newPace() pace { return pace{steps: map[string]stepPace{}} }

// add takes in an attempt that ended.
func (p *pace) add(e *dispatch.Event) {
	u := &e.Result.Usage
	if e.Result.Outcome != dispatch.Succeeded || u.StageInStart.IsZero() || u.StageOutEnd.Before(u.StageInStart) {
		return
	}
	busy := u.StageOutEnd.Sub(u.StageInStart)
	step := p.steps[e.Step]
	p.steps[e.Step] = stepPace{step.count + 1, step.busy + busy}
	p.busy += busy
	if start := e.At.Add(-busy); p.first.IsZero() || start.Before(p.first) {
		p.first = start
	}
}

// enoughPace is how many attempts must have ended, and for how long they must
// have been coming, before anything is said of the rest.
const (
	enoughPace = 3
	paceTime   = 5 * time.Second
)

// estimate estimates the time until jobs have ended of which there are that many for
// each step: they take as long as those before, and as many run side by side.
// It is 0 where nothing can be said, because no job of one of the steps has ended.
func (p *pace) estimate(now time.Time, rest map[string]int) time.Duration {
	elapsed := now.Sub(p.first)
	count, work := 0, 0.0
	for _, step := range p.steps {
		count += step.count
	}
	if count < enoughPace || elapsed < paceTime || p.busy <= 0 {
		return 0
	}
	for name, jobs := range rest {
		step := p.steps[name]
		if step.count == 0 {
			return 0
		}
		work += float64(jobs) * float64(step.busy) / float64(step.count)
	}
	return time.Duration(work * float64(elapsed) / float64(p.busy))
}

// Left estimates the time to the end of the run, or gives 0. While jobs may
// still be made nothing is said.
func (t *Tally) Left(core *dispatch.Core) time.Duration {
	if !t.Finished {
		return 0
	}
	rest := map[string]int{}
	for _, s := range core.Steps() {
		for _, state := range []dispatch.State{dispatch.Waiting, dispatch.Ready, dispatch.Assigned, dispatch.Running} {
			if n := s.ByState[state]; n > 0 {
				rest[s.Step] += n
			}
		}
	}
	return t.pace.estimate(Now(), rest)
}
