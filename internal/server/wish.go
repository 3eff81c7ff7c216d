package server

import (
	"context"
	"errors"
	"path/filepath"

	"fairway/internal/dispatch"
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
)

// resting takes wishes, in a workflow folder where nothing runs.
type resting struct{ folder string }

// change keeps other processes out meanwhile. The view shows what will be.
func (r resting) change(ctx context.Context, q *request) (err error) {
	dir := filepath.Join(r.folder, folder.StateFolder)
	lock, err := folder.LockState(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	records, err := folder.OpenStore(dir)
	if err != nil {
		return err
	}
	defer func() { _ = records.Close() }()
	run, err := state.LoadEndedRun(ctx, records)
	if err != nil {
		return err
	}
	c, err := state.LoadEnded(ctx, records, run)
	if err != nil {
		return err
	}
	if err := q.prepare(c, q); err != nil {
		return err
	}
	for _, in := range q.dispatch {
		if _, err := c.Dispatch.Step(state.Now(), in); err != nil {
			return err
		}
		run.Deferred = append(run.Deferred, state.Defer(in))
	}
	q.ask(c)
	record, err := run.Record()
	if err != nil {
		return err
	}
	return records.Apply(ctx, []dispatch.Record{record})
}

// fulfil has the cores do what was wished for before the run began. That is
// durable together with there being no more wishes.
func (s *Server) fulfil(r *request) error {
	wishes := s.opened.run.DeferredInputs()
	if len(wishes) == 0 {
		return nil
	}
	run := *s.opened.run
	run.Deferred = nil
	record, err := run.Record()
	if err != nil {
		return err
	}
	r.dispatch = append(r.dispatch, wishes...)
	r.records = append(r.records, record)
	r.done = func(err error) {
		if !errors.Is(err, ErrReloaded) { // one that is refused is not wanted any more
			s.opened.run.Deferred = nil
		}
	}
	return nil
}
