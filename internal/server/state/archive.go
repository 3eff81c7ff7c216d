package state

import (
	"context"
	"errors"
	"io/fs"

	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// Records are a Source in memory.
type Records []taskqueue.Record

// Load is part of Source.
func (m Records) Load(_ context.Context, table string) (all []taskqueue.Record, err error) {
	for _, r := range m {
		if r.Table == table {
			all = append(all, r)
		}
	}
	return all, nil
}

// Each is part of Source.
func (m Records) Each(_ context.Context, table string, take func(taskqueue.Record) error) error {
	for _, r := range m {
		if r.Table == table {
			if err := take(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// ArchivedAttempts are the attempts of the run of an archive; none where there is no archive.
func ArchivedAttempts(ctx context.Context, path string) (attempts []taskqueue.AttemptID, err error) {
	archive, err := store.OpenSQLite(path, store.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = archive.Each(ctx, AttemptTable, func(r taskqueue.Record) error {
		_, attempt, err := parseAttemptKey(r)
		attempts = append(attempts, attempt)
		return err
	})
	return attempts, errors.Join(err, archive.Close())
}
