package server

import (
	"context"
	"path/filepath"

	"fairway/internal/dispatch"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
)

// resting takes wishes, in a workflow folder where nothing runs.
type resting struct{ folder string }

// change keeps other processes out meanwhile. The view shows what will be.
func (r resting) change(ctx context.Context, q *loop.Request) (err error) {
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
	if err := q.Prepare(c, q); err != nil {
		return err
	}
	for _, in := range q.Dispatch {
		if _, err := c.Dispatch.Step(state.Now(), in); err != nil {
			return err
		}
		run.Deferred = append(run.Deferred, state.Defer(in))
	}
	q.Ask(c)
	record, err := run.Record()
	if err != nil {
		return err
	}
	return records.Apply(ctx, []dispatch.Record{record})
}
