package server

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"fairway/internal/dispatch"
	"fairway/internal/server/folder"
)

// wish is what a person asked of a run that was not under way. It is durable,
// shown as if it were done, and the first thing that the next run does.
type wish struct {
	Retry  []dispatch.JobID `json:"retry,omitempty"`
	Cancel []dispatch.JobID `json:"cancel,omitempty"`

	Lost []dispatch.LostFile `json:"lost,omitempty"` // noticed with a retry, which it comes before
}

func wishOf(in dispatch.Input) wish {
	switch in := in.(type) {
	case dispatch.RetryJobs:
		return wish{Retry: in.Jobs}
	case dispatch.Cancel:
		return wish{Cancel: in.Jobs}
	case dispatch.LoseFiles:
		return wish{Lost: in.Files}
	}
	return wish{}
}

func (w wish) input() dispatch.Input {
	switch {
	case w.Cancel != nil:
		return dispatch.Cancel{Jobs: w.Cancel}
	case w.Lost != nil:
		return dispatch.LoseFiles{Files: w.Lost}
	}
	return dispatch.RetryJobs{Jobs: w.Retry}
}

// wishes are the inputs that the run begins with.
func (r *runRecord) wishes() []dispatch.Input { return each(r.Wishes, wish.input) }

// resting takes wishes, in a workflow folder where nothing runs.
type resting struct{ folder string }

// change keeps other processes out meanwhile. The view shows what will be.
func (r resting) change(ctx context.Context, q *request) (err error) {
	state := filepath.Join(r.folder, folder.StateFolder)
	lock, err := folder.LockState(state)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	records, err := folder.OpenStore(state)
	if err != nil {
		return err
	}
	defer func() { _ = records.Close() }()
	run, err := loadEnded(ctx, records)
	if err != nil {
		return err
	}
	c, err := loadCores(ctx, records, run)
	if err != nil {
		return err
	}
	if err := q.prepare(c, q); err != nil {
		return err
	}
	for _, in := range q.dispatch {
		if _, err := c.dispatch.Step(now(), in); err != nil {
			return err
		}
		run.Wishes = append(run.Wishes, wishOf(in))
	}
	q.ask(c)
	record, err := run.record()
	if err != nil {
		return err
	}
	return records.Apply(ctx, []dispatch.Record{record})
}

// fulfil has the cores do what was wished for before the run began. That is
// durable together with there being no more wishes.
func (s *Server) fulfil(r *request) error {
	wishes := s.opened.run.wishes()
	if len(wishes) == 0 {
		return nil
	}
	run := *s.opened.run
	run.Wishes = nil
	record, err := run.record()
	if err != nil {
		return err
	}
	r.dispatch = append(r.dispatch, wishes...)
	r.records = append(r.records, record)
	r.done = func(err error) {
		if !errors.Is(err, ErrReloaded) { // one that is refused is not wanted any more
			s.opened.run.Wishes = nil
		}
	}
	return nil
}

// wishedAgain says that a job is to be retried anyway.
func (r *runRecord) wishedAgain(job dispatch.JobID) bool {
	return slices.ContainsFunc(r.Wishes, func(w wish) bool { return slices.Contains(w.Retry, job) })
}
