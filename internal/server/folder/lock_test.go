package folder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLockIsForOne(t *testing.T) {
	state := filepath.Join(t.TempDir(), StateFolder)
	if running, err := IsRunning(state); running || err != nil {
		t.Fatalf("before anything: %v, %v", running, err)
	}
	lock, err := LockState(state)
	if err != nil {
		t.Fatal(err)
	}
	var refusal *RunningError
	if _, err := LockState(state); !errors.As(err, &refusal) || refusal.PID != os.Getpid() {
		t.Fatalf("got %v, want a RunningError of this process", err)
	}
	if running, err := IsRunning(state); !running || err != nil {
		t.Fatalf("while it is held: %v, %v", running, err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if running, err := IsRunning(state); running || err != nil {
		t.Fatalf("after it was released: %v, %v", running, err)
	}
}

// Pilots that an earlier server started are looked for unless there was none: in a new state, and in
// a copy, whose pilots are those of the original.
func TestOnlyTheFirstClaimIsNew(t *testing.T) {
	original := t.TempDir()
	claim := func(workflow string) (isNew bool) {
		t.Helper()
		lock, l, err := Claim(workflow)
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
		return l.New
	}
	if !claim(original) || claim(original) {
		t.Error("not new at first, or later too")
	}
	duplicate := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(duplicate, os.DirFS(original)); err != nil {
		t.Fatal(err)
	}
	if !claim(duplicate) || claim(duplicate) {
		t.Error("a copy is not new at first, or later too")
	}
}

// Servers that stand by for each other have the lock together, and the same state, also where a machine
// knows the file system by another number. Others are kept away.
func TestMembersShareTheLock(t *testing.T) {
	dir := t.TempDir()
	first, l, err := ClaimShared(dir)
	if err != nil {
		t.Fatal(err)
	}
	i, err := readIdentity(l.State)
	if err != nil {
		t.Fatal(err)
	}
	i.Device++
	if err := i.write(l.State); err != nil {
		t.Fatal(err)
	}
	second, again, err := ClaimShared(dir)
	if err != nil || again.ID != l.ID || again.New {
		t.Fatal(again, err)
	}
	for range 2 {
		if _, _, err := Claim(dir); !errors.As(err, new(*RunningError)) {
			t.Error("another server:", err)
		}
		if running, err := IsRunning(l.State); err != nil || !running {
			t.Error(running, err)
		}
		_ = first.Release()
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
	alone, _, err := Claim(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_ = alone.Release()
	third, l3, err := ClaimShared(dir)
	if err != nil || l3.ID != l.ID {
		t.Fatal("it has become another state:", l3.ID, l.ID, err)
	}
	_ = third.Release()
}

// A process that is being started has the files of its parent until it executes another program.
func TestLockIsGivenUpWhoeverElseHasTheFile(t *testing.T) {
	state := filepath.Join(t.TempDir(), StateFolder)
	lock, err := LockState(state)
	if err != nil {
		t.Fatal(err)
	}
	forked, err := unix.Dup(int(lock.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(forked) }()
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := LockState(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}
