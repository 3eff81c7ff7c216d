package sim

import (
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/taskqueue"
)

// mayFail reports whether this step is one of those that fail.
func (s *server) mayFail() bool {
	f := &s.run.exp.Faults
	if f.WriteFailures > 0 && s.run.faced[WriteFailed]+s.run.faced[ServerDiedInStep] >= f.WriteFailures {
		return false
	}
	return s.run.faults.Float64() < float64(f.WriteFails)
}

// failStep ends the server at one of the two places at which a step is half
// done: none of its records are durable, or all are and nobody has heard.
func (s *server) failStep(in taskqueue.Input, records []taskqueue.Record) {
	if s.run.faults.IntN(2) == 0 {
		s.run.faced[WriteFailed]++
		s.inbox = append(retriable(in), s.inbox...)
	} else {
		s.run.faced[ServerDiedInStep]++
		s.store.apply(records)
	}
	s.down(0)
}

// retriable returns what its sender will send again because it got no answer.
// A pilot sends its state again by itself.
func retriable(in taskqueue.Input) []taskqueue.Input {
	switch in.(type) {
	case taskqueue.Sync, taskqueue.Tick:
		return nil
	}
	return []taskqueue.Input{in}
}

// mayCrash plans the next crash.
func (s *server) mayCrash() {
	f := s.run.exp.Faults
	if f.ServerDies.IsZero() || f.Crashes > 0 && s.run.faced[ServerDied] >= f.Crashes {
		return
	}
	s.run.after(f.ServerDies.Draw(s.run.faults), func() {
		s.run.faced[ServerDied]++
		s.down(f.ServerAway.Draw(s.run.faults))
		s.mayCrash()
	})
}

// down discards the core; what is durable remains. The next one does not stand still.
func (s *server) down(away time.Duration) {
	s.core = nil
	s.run.outages.server = s.run.now
	s.tick.stop()
	s.run.after(away, s.load)
}

// load brings the server back from what is durable.
func (s *server) load() {
	if s.core != nil {
		return
	}
	core, effects, err := dispatch.Load(s.config, s.store.all())
	if err != nil {
		s.run.fail("loading what was durable: %v", err)
		return
	}
	s.core = core
	missed := s.inbox
	s.inbox = nil
	s.letOut(effects)
	s.checkStored()
	s.makeSitesKnown()
	s.inbox = append(s.inbox, missed...)
	s.takeIn()
	s.run.recount(core)
}

// recount compares what the run knows of its jobs with what the TaskQueue
// does: events of what was durable when the server crashed were never heard.
func (r *run) recount(core *dispatch.Core) {
	r.recountRivals(core)
	for j := range core.Jobs(theRun, 0) {
		if j.Committed != 0 {
			r.checkCommit(j.ID, j.Name, j.Committed, true)
			r.checkOutputs(core, j.ID)
		}
		switch j.State {
		case taskqueue.Done:
			r.committedUnheard(j.Name)
		case taskqueue.Failed, taskqueue.Blocked, taskqueue.Cancelled:
			r.endedFor(j.Name, taskqueue.JobFailed)
		default:
			r.revived(j.Name)
		}
	}
}

func (r *run) committedUnheard(name string) {
	if r.ends[name] == taskqueue.JobCommitted {
		return
	}
	if i, ok := r.creator.byName(name); ok {
		e := taskqueue.Event{Name: name}
		for _, o := range r.work.jobs[i].job.Writes {
			for _, f := range r.work.writes(&r.work.jobs[i], o) {
				e.Files = append(e.Files, taskqueue.CommittedFile{File: taskqueue.FileRef{LFN: f.lfn}})
			}
		}
		r.outputsOf(&e)
	}
	r.endedFor(name, taskqueue.JobCommitted)
}
