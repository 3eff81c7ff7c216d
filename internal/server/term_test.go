package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/server/term"
	"fairway/test/files"
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

// takeElsewhere has a server on another machine follow the last one.
func takeElsewhere(l folder.Layout) (*term.Term, error) {
	before, err := term.Last(l.State, l.ID)
	if err != nil {
		return nil, err
	}
	return term.Take(l.State, term.Holder{State: l.ID, Machine: "another", Host: "n7"}, before)
}

// A server that another one has followed, on a machine where the lock tells nothing, ends
// before its next commit. It removes none of the other's files, and ends no pilot.
func TestAServerThatWasFollowedChangesNothing(t *testing.T) {
	root := files.Folder(t, threeTexts)
	l := withTerms(t, root)
	r := newRun(t, root, twoSteps, twoStepsScript)
	s, err := Open(context.Background(), r.config)
	if err != nil {
		t.Fatal(err)
	}
	var other *term.Term
	broken := &failing{Store: s.records, fails: func(n int64) bool {
		if n == 3 {
			if other, err = takeElsewhere(l); err != nil {
				t.Error(err)
			}
			_ = s.term.Beat() // it wakes up
		}
		return false
	}}
	s.records, s.runs.own.opened.store, s.loop.Store = broken, broken, broken
	if _, err := s.Run(context.Background()); !errors.Is(err, term.ErrFollowed) {
		t.Fatalf("it ended with %v", err)
	}
	for _, name := range []string{folder.StoreFile + "-wal", folder.SocketName} {
		if _, err := os.Lstat(filepath.Join(l.State, name)); err != nil {
			t.Error("the server that was followed removed what is another's:", err)
		}
	}
	if err := s.records.Close(); err != nil { // as the end of the process does
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
	root := files.Folder(t, threeTexts)
	l := withTerms(t, root)
	other, err := takeElsewhere(l)
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

// A change of a run that rests keeps away from what a server on another machine has taken
// meanwhile, and servers there keep away from the change.
func TestAChangeOfARestingRunHasATerm(t *testing.T) {
	root := files.Folder(t, threeTexts)
	l := withTerms(t, root)
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	v, err := api.OpenResting(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	before, err := term.Last(l.State, l.ID)
	if err != nil {
		t.Fatal(err)
	}
	prepared := false
	request := &loop.Request{Prepare: func(*state.Cores, *loop.Request) error {
		prepared = true
		now, err := term.Last(l.State, l.ID)
		if err != nil || !now.Lives() || now.Number != before.Number+1 {
			t.Errorf("others see %+v, %v", now, err)
		}
		return err
	}, Ask: func(*state.Cores) {}}
	if err := v.Change(t.Context(), request); err != nil || !prepared {
		t.Fatal(err)
	}
	if now, err := term.Last(l.State, l.ID); err != nil || now.Lives() {
		t.Errorf("after the change others see %+v, %v", now, err)
	}
	other, err := takeElsewhere(l)
	if err != nil {
		t.Fatal(err)
	}
	prepared = false
	changed := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { changed <- v.Change(ctx, request) }()
	if err := other.Beat(); err != nil {
		t.Fatal(err)
	}
	cancel() // it is refused if it has looked before the beat, and waits if not
	if err := <-changed; err == nil || prepared {
		t.Errorf("it changed what is another server's: %v", err)
	}
}
