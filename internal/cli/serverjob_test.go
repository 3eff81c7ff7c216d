package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/batch"
	"fairway/internal/disk"
	"fairway/internal/server/folder"
	"fairway/internal/server/term"
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
	s, err := findSite(dir, "deaf")
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	w := &serverWatch{
		console: &console{out: &said, err: &said}, site: s, layout: l, launch: launch,
		ended: make(chan batch.End, 1), silentTime: time.Nanosecond,
	}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if _, err := w.roster.Adopt(context.Background(), []string{launch}); err != nil {
		t.Fatal(err)
	}
	err = w.run(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), "the job of the server at deaf has said nothing for") {
		t.Errorf("got %v\n%s", err, said.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "cancelled.7")); err == nil {
		t.Error("a job was cancelled that may be suspended")
	}
}
