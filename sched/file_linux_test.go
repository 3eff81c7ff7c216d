package sched

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"
)

// TestFilesOnRemoteFileSystemsArePolled has no notices at all, as for changes
// made by another host.
func TestFilesOnRemoteFileSystemsArePolled(t *testing.T) {
	s := newTest(t, Config{})
	n, err := newNotifier(slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	n.(*inotify).remote = func(string) bool { return true }
	h := Register(s, newFileSet(silent{n}, time.Millisecond).kind())
	s.onClose(n, n.close)
	path := filepath.Join(t.TempDir(), "f")
	found := make(chan error)
	go func() { _, err := h.Wait(patient(t), Appears(path)); found <- err }()
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	write(t, path, "x")
	if err := <-found; err != nil {
		t.Fatal(err)
	}
}

// silent drops all notices.
type silent struct{ notifier }

func (n silent) wait(limit time.Duration, _ func(folder, name string)) {
	n.notifier.wait(limit, func(string, string) {})
}
