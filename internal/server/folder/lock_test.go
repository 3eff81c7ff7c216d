package folder

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
