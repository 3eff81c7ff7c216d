package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/internal/flow"
	"fairway/internal/storage"
	"fairway/sched"
)

func watchedFolder(t *testing.T) (*Server, string) {
	folder := t.TempDir()
	s := &Server{sched: sched.Default(), log: slog.Default(), find: newFinder(folder, storage.New(sched.Default().Sleep))}
	incoming := filepath.Join(folder, "incoming")
	if err := os.Mkdir(incoming, 0o755); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(incoming, before, before); err != nil {
		t.Fatal(err)
	}
	return s, incoming
}

func TestNewFileInWatchedFolderIsNoticed(t *testing.T) {
	s, incoming := watchedFolder(t)
	in := &flow.DeclaredInput{Name: "runs", Watch: true, Globs: []string{"incoming/*.raw"}}
	states, limit := s.watched(in)
	if limit != RelookInterval {
		t.Errorf("looked at every %v", limit)
	}
	noticed := make(chan struct{})
	go func() {
		s.await(t.Context(), in, states, time.Hour)
		close(noticed)
	}()
	if err := os.WriteFile(filepath.Join(incoming, "1.raw"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	<-noticed
	if _, limit = s.watched(in); limit != sched.FileClockStep && limit != RelookInterval {
		t.Errorf("looked at again after %v", limit)
	}
}

func TestFoldersWithoutNoticesAreLookedAt(t *testing.T) {
	s, incoming := watchedFolder(t)
	if err := os.Symlink(incoming, filepath.Join(filepath.Dir(incoming), "link")); err != nil {
		t.Fatal(err)
	}
	for _, glob := range []string{"*/*.raw", "link/*.raw", "missing/*.raw"} {
		in := &flow.DeclaredInput{Name: "runs", Watch: true, Globs: []string{glob}}
		if _, limit := s.watched(in); limit != WatchInterval {
			t.Errorf("%s: looked at every %v", glob, limit)
		}
	}
}
