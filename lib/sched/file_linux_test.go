package sched

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fairway/lib/sched/internal/notices"
)

// TestFilesOnRemoteFileSystemsArePolled has no notices at all, as for changes
// made by another host.
func TestFilesOnRemoteFileSystemsArePolled(t *testing.T) {
	s := newTest(t, Config{})
	n, err := notices.New(slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	h := register(s, newFileSet(silent{n}, time.Millisecond, time.Hour).kind(), n.Close)
	path := filepath.Join(t.TempDir(), "f")
	found := make(chan error)
	go func() { _, err := h.Wait(patient(t), Appears(path)); found <- err }()
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	write(t, path, "x")
	if err := <-found; err != nil {
		t.Fatal(err)
	}
}

// silent drops all notices, and says so.
type silent struct{ notices.Notifier }

func (n silent) Watch(folder string) bool {
	n.Notifier.Watch(folder)
	return false
}

func (n silent) Wait(limit time.Duration, _ func(folder, name string)) {
	n.Notifier.Wait(limit, func(string, string) {})
}

// rechecking waits for q with all notices there are, and looks at everything
// anew after a millisecond.
func rechecking(t *testing.T, q FileQuery) (joined func(), found <-chan error) {
	s := newTest(t, Config{})
	n, err := notices.New(slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	h := register(s, newFileSet(n, time.Hour, time.Millisecond).kind(), n.Close)
	ended := make(chan error, 1)
	go func() { _, err := h.Wait(patient(t), q); ended <- err }()
	return func() { until(t, s, "joined", func() bool { return members(s, "file") == 1 }) }, ended
}

func TestWaitFileFindsAFolderThatWasReplacedFromAbove(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	path := filepath.Join(above, "folder", "f")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	joined, found := rechecking(t, Appears(path))
	joined()
	if err := errors.Join(os.Rename(above, above+".old"), os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
		t.Fatal(err)
	}
	write(t, path, "x")
	if err := <-found; err != nil {
		t.Fatal(err)
	}
}

func TestWaitFileFindsWhatAHardLinkElsewhereChanged(t *testing.T) {
	path, link := filepath.Join(t.TempDir(), "f"), filepath.Join(t.TempDir(), "link")
	write(t, path, "x")
	if err := os.Link(path, link); err != nil {
		t.Skip(err)
	}
	before, err := StatFile(path)
	if err != nil {
		t.Fatal(err)
	}
	joined, found := rechecking(t, Changes(path, before))
	joined()
	write(t, link, "longer")
	if err := <-found; err != nil {
		t.Fatal(err)
	}
}

func TestWaitFileSeesAProcessGo(t *testing.T) {
	s := newTest(t, Config{FileInterval: time.Millisecond})
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := waitFile(t, s, Disappears(fmt.Sprintf("/proc/%d", cmd.Process.Pid)))
	until(t, s, "joined", func() bool { return members(s, "file") == 1 })
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	<-gone
}
