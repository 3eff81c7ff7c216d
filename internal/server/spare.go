package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"fairway/internal/server/folder"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// A lasting server keeps a file that nobody reads beside its store. Where the disk is full to the last byte
// it goes: to remove a run takes room, for records, before it gives some back.

// maxSpare bounds that file in bytes; it has a fiftieth of the disk at the most.
const maxSpare = 16 << 20

func (s *Server) sparePath() string { return filepath.Join(s.folders.State, folder.SpareName) }

// keepSpare makes the file if it is not there and there is room for it.
func (s *Server) keepSpare() {
	if _, err := os.Lstat(s.sparePath()); err == nil {
		return
	}
	free, all, err := spaceOf(s.folders.State)
	size := min(maxSpare, all/50)
	if err != nil || free < 3*size {
		return
	}
	file, err := os.OpenFile(s.sparePath(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = errors.Join(unix.Fallocate(int(file.Fd()), 0, 0, size), file.Close())
	}
	if err != nil {
		_ = os.Remove(s.sparePath())
		s.log.Warn("no room could be set aside for the removal of runs", "error", err)
	}
}

// giveSpare removes the file, and reports whether it was there.
func (s *Server) giveSpare() bool { return os.Remove(s.sparePath()) == nil }

// sparingStore gives the file away when the store has no room.
type sparingStore struct {
	store.Store
	server *Server
}

// Apply is part of store.Store.
func (s sparingStore) Apply(ctx context.Context, records []taskqueue.Record) error {
	err := s.Store.Apply(ctx, records)
	if errors.Is(err, store.ErrFull) && s.server.giveSpare() {
		err = s.Store.Apply(ctx, records)
	}
	return err
}
