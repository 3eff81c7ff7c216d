package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/disk"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// archivePart is how many records of an archive are written in one transaction.
const archivePart = 4096

// writeArchive makes the store that keeps the records of a run which is retired. It is there as a
// whole, durably, or not at all; one that is there already is replaced.
func (s *Server) writeArchive(ctx context.Context, path string, records []taskqueue.Record) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// One of a server that was killed, or is frozen: it cannot give it the name any more then.
	for _, name := range disk.Beginning(path + disk.PartPrefix) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	unready := fmt.Sprintf("%s%s%d", path, disk.PartPrefix, s.termNumber)
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
	if err := s.role.Assert(ctx); err != nil {
		return err
	}
	if err := os.Rename(unready, path); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(path))
}
