package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fairway/internal/server/folder"
	"fairway/internal/server/term"
)

// withTerms makes the state of a folder one whose servers have terms.
func withTerms(t *testing.T, root string) folder.Layout {
	t.Helper()
	lock, l, err := folder.Claim(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(l.State, folder.ServersName), 0o700), lock.Release()); err != nil {
		t.Fatal(err)
	}
	return l
}

// A server that another one has followed, on a machine where the lock tells nothing, ends
// before its next commit. It removes none of the other's files, and ends no pilot.
func TestAServerThatWasFollowedChangesNothing(t *testing.T) {
	root := newFolder(t, threeTexts)
	l := withTerms(t, root)
	r := newRun(t, root, twoSteps, twoStepsScript)
	s, err := Open(context.Background(), r.config)
	if err != nil {
		t.Fatal(err)
	}
	var other *term.Term
	broken := &failing{Store: s.opened.store, fails: func(n int64) bool {
		if n == 3 {
			if other, err = term.Take(l.State, term.Holder{State: l.ID, Machine: "another"}); err != nil {
				t.Error(err)
			}
			_ = s.term.Beat() // it wakes up
		}
		return false
	}}
	s.opened.store, s.loop.Store = broken, broken
	if _, err := s.Run(context.Background()); !errors.Is(err, term.ErrFollowed) {
		t.Fatalf("it ended with %v", err)
	}
	for _, name := range []string{folder.StoreFile + "-wal", folder.SocketName} {
		if _, err := os.Lstat(filepath.Join(l.State, name)); err != nil {
			t.Error("the server that was followed removed what is another's:", err)
		}
	}
	if err := s.opened.store.Close(); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	if err := errors.Join(s.lock.Release(), other.End()); err != nil {
		t.Fatal(err)
	}
	again := newRun(t, root, twoSteps, twoStepsScript)
	again.mustSucceed()
	if got := again.result("joined.txt"); got != "ONE TWO THREE " {
		t.Fatalf("got %q", got)
	}
}

// While a server on another machine has the state, nobody else begins, and a rehearsal does
// not read what it writes.
func TestAServerElsewhereIsNotDisturbed(t *testing.T) {
	root := newFolder(t, threeTexts)
	l := withTerms(t, root)
	other, err := term.Take(l.State, term.Holder{State: l.ID, Machine: "another", Host: "n7"})
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t, root, twoSteps, twoStepsScript)
	if _, err := DryRun(t.Context(), r.config); !errors.As(err, new(*term.HeldError)) {
		t.Errorf("a rehearsal: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan error, 1)
	go func() {
		_, err := Open(ctx, r.config)
		begun <- err
	}()
	if err := other.Beat(); err != nil {
		t.Fatal(err)
	}
	// It is refused if it has looked before the beat, and waits if not.
	cancel()
	if err := <-begun; !errors.As(err, new(*term.HeldError)) && !errors.Is(err, context.Canceled) {
		t.Errorf("another server: %v", err)
	}
}
