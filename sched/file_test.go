package sched

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func waitFile(t *testing.T, s *Scheduler, q FileQuery) <-chan FileState {
	found := make(chan FileState, 1)
	go func() {
		st, err := s.WaitFile(patient(t), q)
		if err != nil {
			t.Errorf("wait for %s: %v", q.Path, err)
		}
		found <- st
	}()
	return found
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWaitFileAppearsInFolderThatComesLater(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Millisecond})
	dir := filepath.Join(t.TempDir(), "a", "b")
	found := waitFile(t, s, Appears(filepath.Join(dir, "f")))
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "f"), "x")
	if st := <-found; st.Info == nil || st.Info.Name() != "f" {
		t.Fatalf("got %v", st)
	}
}

func TestWaitFileChangesAndDisappears(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Hour})
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "x")
	st, err := StatFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := waitFile(t, s, Changes(path, st))
	write(t, path, "longer")
	st = <-found
	gone := waitFile(t, s, Disappears(path))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if st = <-gone; st.Info != nil {
		t.Fatalf("got %v", st)
	}
}

func TestWaitFileCancelled(t *testing.T) {
	s := newTest(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.WaitFile(ctx, Appears(filepath.Join(t.TempDir(), "never")))
		ended <- err
	}()
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
