package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/internal/batch"
	"fairway/internal/pilot"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
	"fairway/test/files"
)

// impatientPilots are processes that reach the server over TLS, with a short lease.
func impatientPilots() Site {
	return Site{
		Site: taskqueue.Site{Name: "cluster", MaxPilots: 2, Pilot: taskqueue.Resources{MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 20}},
		System: func(folders folder.Layout, way func(string, any) (launch.Way, error)) (batch.System, error) {
			return batch.NewLocal(batch.LocalConfig{
				State: folders.ID, LogDir: folders.Pilots, Command: []string{os.Args[0]},
				Environment: func(name string) ([]string, error) {
					at, err := way(name, pilot.Config{
						MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 20, Lease: time.Second,
						SandboxDir: folders.Sandbox, LogDir: folders.Logs, Storage: folder.StoragePrefix, Element: folders.Storage,
						Workflow: folders.Workflow,
					})
					return []string{connectVariable + "=" + at.File}, err
				},
			})
		},
	}
}

// becomes waits until a question has an answer.
func becomes[T any](t *testing.T, what string, ask func() (T, bool)) (answer T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := sched.Register(sched.Default(),
		sched.Kind[func() (T, bool), T]{Name: "test", Poll: func(waiting []*sched.Request[func() (T, bool), T]) {
			for _, r := range waiting {
				if value, ok := r.Value(); ok {
					r.Done(value, nil)
				}
			}
		}})
	answer, err := look.Wait(ctx, ask)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return answer
}

// parentOf is the parent of a process, 0 where there is no such process.
func parentOf(pid int) (parent int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "State:\tZ") {
			return 0
		}
		_, _ = fmt.Sscanf(line, "PPid: %d", &parent)
	}
	return parent
}

// A pilot that was frozen for longer than its lease comes back when its work was given to
// another one. It ends what it ran and itself, says why, and its result is not taken.
func TestAFrozenPilotLeaves(t *testing.T) {
	t.Parallel()
	root := files.Folder(t, nil)
	r := newRun(t, root, strings.ReplaceAll(`
workflow: frozen
steps:
  only:
    writes: out
    command: |
      echo $$ $FAIRWAY_PILOT >> ROOT/begun
      while ! [ -e ROOT/go ]; do sleep 0.05; done
      echo $FAIRWAY_PILOT > "$out"
`, "ROOT", root), nil)
	r.config.System, r.config.Listen, r.config.Sites = nil, "127.0.0.1:0", []Site{impatientPilots()}
	r.config.Dispatch.Hold = time.Second
	ended := make(chan Outcome, 1)
	go func() { ended <- r.run() }()
	begun := func(lines int) (pid int, name string) {
		t.Helper()
		text := becomes(t, fmt.Sprintf("%d attempts", lines), func() (string, bool) {
			text, _ := os.ReadFile(filepath.Join(root, "begun"))
			return string(text), strings.Count(string(text), "\n") >= lines
		})
		if _, err := fmt.Sscan(strings.Split(text, "\n")[lines-1], &pid, &name); err != nil {
			t.Fatal(err)
		}
		return pid, name
	}
	job, frozen := begun(1)
	process := parentOf(job)
	if err := syscall.Kill(process, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, other := begun(2)
	// The batch system may have woken it already, to end it.
	if err := syscall.Kill(process, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	for what, pid := range map[string]int{"the job of the frozen pilot ends": job, "the frozen pilot ends": process} {
		becomes(t, what, func() (int, bool) { return 0, parentOf(pid) == 0 })
	}
	launch := frozen[:strings.LastIndexByte(frozen, '-')]
	log := becomes(t, "its log", func() (string, bool) {
		logs, _ := filepath.Glob(filepath.Join(root, ".fairway/pilots/*", launch+".log"))
		if len(logs) != 1 {
			return "", false
		}
		text, err := os.ReadFile(logs[0])
		return string(text), err == nil
	})
	if !strings.Contains(log, "leaving") {
		t.Errorf("it does not say that it leaves:\n%s", log)
	}
	files.Write(t, filepath.Join(root, "go"), "")
	if outcome := <-ended; !outcome.Succeeded {
		t.Fatalf("%+v", outcome)
	}
	if got := strings.TrimSpace(r.result("out")); got != other || other == frozen {
		t.Errorf("the result is of %q; frozen was %q, and %q came", got, frozen, other)
	}
}
