package feed

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/lib/sched"
)

func watchedFolder(t *testing.T) (*Feeder, string) {
	folder := t.TempDir()
	s := &Feeder{sched: sched.Default(), log: slog.Default(),
		find: NewFinder(folder, elements.New(storage.Roots{}, sched.Default().Sleep))}
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
	in := &workflow.DeclaredInput{Name: "runs", Watch: true, Globs: []string{"incoming/*.raw"}}
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
		in := &workflow.DeclaredInput{Name: "runs", Watch: true, Globs: []string{glob}}
		if _, limit := s.watched(in); limit != WatchInterval {
			t.Errorf("%s: looked at every %v", glob, limit)
		}
	}
}

// A clock that is ahead, or a time kept by a copy, must not keep a file out.
func TestFileOfTheFutureSettles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1.raw")
	now := time.Now()
	alone := make(stability)
	look := func(after time.Duration) bool {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return alone.stable(path, info, now.Add(after))
	}
	write := func(text string, modified time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, modified, modified)); err != nil {
			t.Fatal(err)
		}
	}
	write("x", now.Add(time.Hour))
	if look(0) || look(StableTime-1) {
		t.Error("stable at once")
	}
	write("longer", now.Add(time.Hour))
	if look(StableTime) {
		t.Error("stable though it has just been written to")
	}
	if !look(2 * StableTime) {
		t.Error("never stable")
	}
	write("x", now)
	if look(StableTime-1) || !look(StableTime) {
		t.Error("not stable by its own time")
	}
}
