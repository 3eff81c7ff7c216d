package server

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/server/convert"
	"fairway/internal/server/state"
)

// decide steps dispatch.
func (l *loop) decide(in dispatch.Input) (dispatch.Effects, error) {
	at := state.Now()
	effects, err := l.Dispatch.Step(at, in)
	l.tape.Dispatch(at, in, &effects, err)
	return effects, err
}

// stepDispatch steps dispatch and follows the events through flow until both
// rest. An error means that in was refused.
func (l *loop) stepDispatch(in dispatch.Input) error {
	effects, err := l.decide(in)
	if err != nil {
		return err
	}
	l.end.owed.met(in)
	if done, ok := in.(dispatch.Published); ok {
		l.Tally.Published(done.File.LFN)
	}
	l.absorb(&effects)
	l.settle()
	return nil
}

// absorb takes over the effects of one step of dispatch.
func (l *loop) absorb(e *dispatch.Effects) {
	l.gathering.collect(e)
	l.end.owed.owe(e)
	l.events = append(l.events, e.Events...)
	l.waker.dispatch(e.WakeAt)
	for _, start := range slices.Clone(e.Start) {
		l.nameLaunches(start)
	}
}

// nameLaunches names the pilots that dispatch asks for. Their records are in the
// same transaction, so the names are durable before any is submitted: whatever a
// batch system has under such a name is known after a crash.
func (l *loop) nameLaunches(start dispatch.Start) {
	for range start.Count {
		name := newLaunch(start.Site)
		effects, err := l.decide(dispatch.PilotSubmitted{Site: start.Site, Launch: name})
		if err != nil {
			l.end.broken(fmt.Errorf("starting a pilot at %s: %w", start.Site, err))
			return
		}
		l.gathering.start = append(l.gathering.start, order{start.Site, name})
		l.absorb(&effects)
	}
}

// stepFlow steps flow and carries out what it wants of dispatch.
func (l *loop) stepFlow(in flow.Input) error {
	if err := l.follow(in); err != nil {
		return err
	}
	l.settle()
	return nil
}

// settle feeds events to flow, oldest first. That flow or dispatch refuses what
// the other says is an end of the run: it would come again after any restart.
func (l *loop) settle() {
	for len(l.events) > 0 {
		event := l.events[0]
		l.events = l.events[1:]
		l.end.observe(&event)
		if err := l.note(&event); err != nil {
			l.end.broken(err)
			break
		}
	}
	l.events = l.events[:0]
}

func (l *loop) note(event *dispatch.Event) error {
	l.Tally.Observe(event)
	if event.Result != nil {
		record, err := l.Tally.Attempts.Record(event)
		if err != nil {
			return err
		}
		l.gathering.records = append(l.gathering.records, record)
	}
	switch event.Kind {
	case dispatch.PilotRegistered:
		l.gathering.records = append(l.gathering.records, l.Tally.Hosts.Record(event.Pilot, event.Host))
		if event.Reason != "" {
			l.log.Warn("a pilot cannot work; another is tried later", "pilot", event.Pilot, "reason", event.Reason)
		}
	case dispatch.JobCommitted:
		return l.follow(flow.Happened{Event: *event})
	}
	return nil
}

func (l *loop) follow(in flow.Input) error {
	at := state.Now()
	effects, err := l.Flow.Step(at, in)
	l.tape.Flow(at, in, &effects, err)
	if err != nil {
		return err
	}
	l.gathering.records = append(l.gathering.records, effects.Persist...)
	l.waker.flow(effects.WakeAt)
	l.Tally.ObserveFlow(&effects)
	for _, note := range effects.Notes {
		l.end.note(note)
	}
	if len(effects.AddFiles) > 0 {
		if err := l.feed(dispatch.AddFiles{Files: effects.AddFiles}); err != nil {
			return err
		}
	}
	if len(effects.Submit) == 0 {
		return nil
	}
	jobs, err := convert.JobsWithPayload(effects.Submit)
	if err != nil {
		return err
	}
	return l.feed(dispatch.Submit{Jobs: jobs})
}

// feed steps dispatch on behalf of flow; the events wait for settle.
func (l *loop) feed(in dispatch.Input) error {
	effects, err := l.decide(in)
	if err != nil {
		return fmt.Errorf("the workflow asks for what cannot be done: %w", err)
	}
	l.absorb(&effects)
	return nil
}
