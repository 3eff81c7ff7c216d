package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/disk"
	"fairway/internal/dispatch"
	"fairway/internal/store"
)

// Records are a Source in memory.
type Records []dispatch.Record

// Load is part of Source.
func (m Records) Load(_ context.Context, table string) (all []dispatch.Record, err error) {
	for _, r := range m {
		if r.Table == table {
			all = append(all, r)
		}
	}
	return all, nil
}

// Each is part of Source.
func (m Records) Each(_ context.Context, table string, take func(dispatch.Record) error) error {
	for _, r := range m {
		if r.Table == table {
			if err := take(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// archivePart is how many records of an archive are written in one transaction.
const archivePart = 4096

// WriteArchive makes the store that keeps the records of a run which is retired. It is there as a
// whole, durably, or not at all; one that is there already is replaced.
func WriteArchive(ctx context.Context, path string, records []dispatch.Record) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unready := path + disk.PartPrefix
	for _, name := range []string{unready, unready + "-wal", unready + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	archive, err := store.OpenSQLite(unready, store.ReadWrite)
	if err != nil {
		return err
	}
	for at := 0; at < len(records) && err == nil; at += archivePart {
		err = archive.Apply(ctx, records[at:min(at+archivePart, len(records))])
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	if err := os.Rename(unready, path); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(path))
}

// ArchivedAttempts are the attempts of the run of an archive; none where there is no archive.
func ArchivedAttempts(ctx context.Context, path string) (attempts []dispatch.AttemptID, err error) {
	archive, err := store.OpenSQLite(path, store.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = archive.Each(ctx, AttemptTable, func(r dispatch.Record) error {
		_, attempt, err := parseAttemptKey(r)
		attempts = append(attempts, attempt)
		return err
	})
	return attempts, errors.Join(err, archive.Close())
}
