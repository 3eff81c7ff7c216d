package term

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/server/folder"
	"fairway/lib/sched"
)

const id = "identity"

func stateFolder(t *testing.T) string {
	t.Helper()
	lock, l, err := folder.Claim(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	return l.State
}

func on(machine, launch string) Holder {
	return Holder{State: id, Machine: machine, Host: "host of " + machine, Launch: launch}
}

func mustTake(t *testing.T, state string, self Holder) *Term {
	t.Helper()
	taken, err := Take(state, self, last(t, state, self.State))
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func last(t *testing.T, state, of string) Holder {
	t.Helper()
	h, err := Last(state, of)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T, s *sched.Scheduler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := sched.New(sched.Config{})
		defer s.Close()
		test(t, s)
	})
}

// A lock that is local to a node tells another node nothing, so a server that lives must be
// seen by its beats.
func TestAServerThatBeatsIsNotFollowed(t *testing.T) {
	bubble(t, func(t *testing.T, s *sched.Scheduler) {
		state := stateFolder(t)
		first := mustTake(t, state, on("one", ""))
		go func() {
			_ = s.Sleep(t.Context(), BeatTime)
			_ = first.Beat()
		}()
		_, err := Await(t.Context(), s, state, id, "two", "")
		if held, ok := errors.AsType[*HeldError](err); !ok || held.Holder.Host != "host of one" {
			t.Errorf("got %v", err)
		}
	})
}

// A server that was silent for too long is followed. When it wakes up, it changes nothing
// any more.
func TestAServerThatWakesUpLateChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *sched.Scheduler) {
		state := stateFolder(t)
		first := mustTake(t, state, on("one", ""))
		if _, err := Await(t.Context(), s, state, id, "two", ""); err != nil {
			t.Fatal(err)
		}
		second := mustTake(t, state, on("two", ""))
		if !second.Unclean {
			t.Error("it is not known that the first one may still write")
		}
		for _, is := range []error{first.Good(), first.Beat(), first.End()} {
			if !errors.Is(is, ErrFollowed) {
				t.Errorf("the first one may go on: %v", is)
			}
		}
		if err := second.Good(); err != nil {
			t.Error(err)
		}
	})
}

// Trust in a beat ends long before anybody may follow.
func TestTrustEndsBeforeSilence(t *testing.T) {
	if TrustTime+2*BeatTime > SilentTime {
		t.Errorf("a server trusts its beat for %v, and is followed after %v", TrustTime, SilentTime)
	}
}

// Of several that find the state free at the same moment, one has it.
func TestOneOfManyTakesATerm(t *testing.T) {
	state := stateFolder(t)
	mustTake(t, state, on("one", ""))
	before := last(t, state, id)
	var group sync.WaitGroup
	taken := make(chan error, 32)
	for range cap(taken) {
		group.Go(func() {
			_, err := Take(state, on("two", ""), before)
			taken <- err
		})
	}
	group.Wait()
	close(taken)
	good := 0
	for err := range taken {
		if err == nil {
			good++
		} else if !errors.As(err, new(*HeldError)) {
			t.Error(err)
		}
	}
	if good != 1 {
		t.Errorf("%d of them have the state", good)
	}
}

// A server that speaks after others have waited for it, and before one has followed it,
// keeps the state.
func TestABeatBeforeTheTermKeepsTheState(t *testing.T) {
	bubble(t, func(t *testing.T, s *sched.Scheduler) {
		state := stateFolder(t)
		first := mustTake(t, state, on("one", ""))
		before, err := Await(t.Context(), s, state, id, "two", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Beat(); err != nil {
			t.Fatal(err)
		}
		if _, err := Take(state, on("two", ""), before); !errors.As(err, new(*HeldError)) {
			t.Errorf("got %v", err)
		}
		if err := first.Beat(); err != nil {
			t.Error("the first one lost the state:", err)
		}
	})
}

// A network file system may have made a link whose answer is that the name is there.
func TestALinkThatWasMadeTwiceIsMade(t *testing.T) {
	fresh, other, file := filepath.Join(t.TempDir(), "fresh"), filepath.Join(t.TempDir(), "other"),
		filepath.Join(t.TempDir(), "file")
	for _, path := range []string{fresh, other} {
		if err := write(path, "x"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := linkNew(fresh, file); err != nil {
			t.Error(err)
		}
	}
	if err := linkNew(other, file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another file takes the name: %v", err)
	}
}

// Whoever is late by several terms does not take one that has passed.
func TestNoTermIsTakenTwice(t *testing.T) {
	state := stateFolder(t)
	mustTake(t, state, on("one", ""))
	before := last(t, state, id)
	mustTake(t, state, on("two", ""))
	third := mustTake(t, state, on("three", ""))
	_, err := Take(state, on("four", ""), before)
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Holder.Machine != "three" {
		t.Errorf("got %v", err)
	}
	if err := third.Good(); err != nil {
		t.Error(err)
	}
}

// The successor that a server has named gets the state at once, whatever machine it is on.
func TestASuccessorIsGivenTheState(t *testing.T) {
	bubble(t, func(t *testing.T, s *sched.Scheduler) {
		state := stateFolder(t)
		first := mustTake(t, state, on("one", "a"))
		if err := first.Change(func(h *Holder) { h.Successor = "b" }); err != nil {
			t.Fatal(err)
		}
		go func() {
			for !first.Asked() {
				_ = s.Sleep(t.Context(), BeatTime)
				_ = first.Beat()
			}
			_ = first.End()
		}()
		begun := time.Now()
		if _, err := Await(t.Context(), s, state, id, "two", "b"); err != nil || time.Since(begun) > SilentTime {
			t.Fatal(err, time.Since(begun))
		}
		if mustTake(t, state, on("two", "b")).Unclean {
			t.Error("a server that ended in order counts as one that may write")
		}
		if asks, _ := filepath.Glob(filepath.Join(state, folder.ServersName, "*"+asksEnding)); len(asks) > 0 {
			t.Error("left:", asks)
		}
	})
}

// A server that was killed on this machine is followed at once: its lock is free.
func TestTheLockTellsOnOneMachine(t *testing.T) {
	bubble(t, func(t *testing.T, s *sched.Scheduler) {
		state := stateFolder(t)
		mustTake(t, state, on("one", ""))
		begun := time.Now()
		if _, err := Await(t.Context(), s, state, id, "one", ""); err != nil || time.Since(begun) > 0 {
			t.Error(err, time.Since(begun))
		}
		lock, err := folder.LockState(state)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Release()
		if _, err := Await(t.Context(), s, state, id, "one", ""); !errors.As(err, new(*HeldError)) {
			t.Error("while the lock is held:", err)
		}
	})
}

// A copy of a state has terms of the original, whose servers do not have the copy.
func TestTermsOfTheOriginalDoNotCount(t *testing.T) {
	state := stateFolder(t)
	mustTake(t, state, on("one", ""))
	if _, _, err := Announce(state, Pending{State: id, Launch: "a", Site: "site"}); err != nil {
		t.Fatal(err)
	}
	if last, err := Last(state, "copy"); err != nil || last.Lives() {
		t.Error(last, err)
	}
	self := on("two", "")
	self.State = "copy"
	mustTake(t, state, self)
	p, fresh, err := Announce(state, Pending{State: "copy", Launch: "b", Site: "site"})
	if err != nil || !fresh || p.Launch != "b" {
		t.Error(p, fresh, err)
	}
}

// Two commands that submit a server at the same time submit one.
func TestOneLaunchIsPending(t *testing.T) {
	state := stateFolder(t)
	if _, fresh, err := Announce(state, Pending{State: id, Launch: "a", Site: "site"}); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	p, fresh, err := Announce(state, Pending{State: id, Launch: "b", Site: "site"})
	if err != nil || fresh || p.Launch != "a" {
		t.Error(p, fresh, err)
	}
	mustTake(t, state, on("one", "a"))
	if p, err := PendingOf(state, id); err != nil || p.Launch != "" {
		t.Error("a server that has begun is pending:", p, err)
	}
}

// What stands in the file of a term holds a secret, and is believed.
func TestFilesOfTermsAreForTheirUser(t *testing.T) {
	state := stateFolder(t)
	mustTake(t, state, on("one", ""))
	file := path(state, 1, termEnding)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Last(state, id); err == nil {
		t.Error("a file that others may read is believed")
	}
}

// No text in the place of a file of a term may stop those who read it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"state":"identity","machine":"one","beat":3,"connection":{"addresses":["h:1"]}}`))
	f.Add([]byte("\xff\x00{"))
	state := filepath.Join(f.TempDir(), folder.StateFolder)
	if err := os.MkdirAll(filepath.Join(state, folder.ServersName), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path(state, 7, termEnding), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if h, err := Last(state, id); err == nil && h.State == id && h.Number != 7 {
			t.Errorf("%+v", h)
		}
	})
}
