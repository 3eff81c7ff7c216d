package serverjob

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"fairway/internal/disk"
	"fairway/internal/server/folder"
	"fairway/internal/server/term"
	"fairway/internal/site"
)

// A controller that was restarted may take a job for one that runs, though it has ended: who
// waits for the server does not wait for it.
func TestAServerThatFellSilentIsNotWaitedFor(t *testing.T) {
	const launch = "server-lost"
	dir := t.TempDir()
	sites := strings.NewReplacer("DIR", dir, "LAUNCH", launch).Replace(`sites:
  deaf:
    system: command
    poll: 1ms
    command:
      submit: ["true"]
      status: [echo, "fairway-server.STATE.LAUNCH 7 R"]
      job: '(?m)^(?P<name>\S+) (?P<id>\d+) (?P<state>\S+)$'
      states: {running: [R]}
      cancel: [touch, "DIR/cancelled.{id}"]
`)
	lock, l, err := folder.Claim(dir)
	if err == nil {
		err = lock.Release()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sites.yaml"), []byte(strings.ReplaceAll(sites, "STATE", l.ID[:12])), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	holder := term.Holder{State: l.ID, Machine: disk.Machine(), Host: "n7", Launch: launch, Site: "deaf"}
	if _, err := term.Take(l.State, holder, term.Holder{}); err != nil {
		t.Fatal(err)
	}
	s, err := site.Find(dir, "deaf")
	if err != nil {
		t.Fatal(err)
	}
	w, err := open(s, l)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.launch, w.silentTime = launch, time.Nanosecond
	if _, err := w.roster.Adopt(context.Background(), []string{launch}); err != nil {
		t.Fatal(err)
	}
	for w.Waiting() != "the server is a job of deaf" {
		runtime.Gosched() // the batch system is asked each millisecond
	}
	if w.FellSilent() {
		t.Error("a server is taken for dead that was looked at once")
	}
	if !w.FellSilent() {
		t.Error("a server that says nothing is waited for")
	}
	if _, err := os.Stat(filepath.Join(dir, "cancelled.7")); err == nil {
		t.Error("a job was cancelled that may be suspended")
	}
}
