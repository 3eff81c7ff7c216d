package pilot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/internal/wire"
)

func TestLeavesWhenDrained(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	folder := t.TempDir()
	begun, file := filepath.Join(folder, "begun"), filepath.Join(folder, "go")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	a := shell(": > " + begun + "; while ! [ -e " + file + " ]; do sleep 0.01; done")
	q.assign("p1", a)
	contents(t, begun) // is read when the command has opened it
	q.change(func() { q.pilot("p1").leave, q.pilot("p1").news = true, true })
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}

// A server that was just started may hear the farewell before the Sync that makes the
// pilot known. It would then wait for a pilot that has ended.
func TestFarewellIsRepeatedWhereThePilotIsNotKnown(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	q.until("registration", func() bool { return q.pilot("p1").hello != nil })
	q.change(func() { q.strange = true })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err != nil {
		t.Error(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	syncs := q.pilot("p1").syncs
	if last := syncs[len(syncs)-1]; !last.GetLeaving() || !last.GetFull() || last.GetHello() == nil {
		t.Errorf("the last Sync is %v; want a farewell with the whole state", last)
	}
}

func TestEnvironmentCheck(t *testing.T) {
	q := newTaskQueue(t)
	count := 0
	for name, change := range map[string]func(*Config){
		"no-such-tool is not in PATH": func(c *Config) { c.Tools = []string{"sh", "no-such-tool"} },
		"of memory, 1.2 EB are asked": func(c *Config) { c.Memory = 1 << 60 },
		"bytes free":                  func(c *Config) { c.Disk = 1 << 60 },
		"storage element":             func(c *Config) { c.Storage = "/dev/null/x" },
	} {
		count++
		id := "p" + strconv.Itoa(count)
		cfg := q.config(id)
		change(&cfg)
		p := q.start(cfg)
		if p.wait() == nil {
			t.Error(name, "did not end the pilot with an error")
		}
		q.until("announcement", func() bool {
			seen := q.pilots[id]
			return seen != nil && strings.Contains(seen.hello.GetError(), name) && seen.left
		})
	}
	cfg := q.config("fine")
	cfg.Tools, cfg.Probe = []string{"sh"}, []string{"no-such-tool", "cat"}
	q.start(cfg)
	q.until("tools", func() bool {
		hello := q.pilot("fine").hello
		return strings.Join(hello.GetTools(), " ") == "sh cat" && hello.GetHas().GetMilliCpus() == 2000
	})
}

// Where jobs can have no strict sandboxes, a pilot that must give them says so before any job
// runs; another works.
func TestEnvironmentCheckOfStrictSandboxes(t *testing.T) {
	if out, err := exec.Command("unshare", "--user", "--map-root-user", "sh", "-c", "echo 0 > "+
		"/proc/sys/user/max_user_namespaces").CombinedOutput(); err != nil {
		t.Skip(string(out), err)
	}
	q := newTaskQueue(t)
	without := []string{"unshare", "--user", "--map-root-user", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces; exec "$0"`, os.Args[0]}
	for id, mode := range map[string]SandboxMode{"steps": SandboxSteps, "strict": SandboxStrict} {
		cfg := q.config(id)
		cfg.Sandbox = mode
		if p := q.startBy(without, cfg); p.wait() == nil {
			t.Error(mode, "did not end the pilot with an error")
		}
		q.until("announcement", func() bool {
			seen := q.pilots[id]
			return seen != nil && strings.Contains(seen.hello.GetError(), "user.max_user_namespaces") && seen.left
		})
	}
	q.startBy(without, q.config("open"))
	expect(t, q.run("open", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
	r := q.run("open", shell("true", payload(func(p *wire.Payload) { p.Strict = true })))
	expect(t, r, wire.Outcome_OUTCOME_EXITED, "sandbox: strict")

	cfg := q.config("system")
	cfg.Sandbox, cfg.Workflow = SandboxStrict, "/"
	if q.start(cfg).wait() == nil {
		t.Error("a workflow in / is hidden from its jobs")
	}
	cfg = q.config("all")
	cfg.Sandbox, cfg.Workflow = SandboxStrict, q.folder
	q.start(cfg)
	expect(t, q.run("all", shell("test -e .. && ! test -e ../lock && ! test -e "+q.folder+"/all.log")),
		wire.Outcome_OUTCOME_SUCCEEDED, "")
}

func TestLease(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Lease = 300 * time.Millisecond
	p := q.start(cfg)
	file := filepath.Join(t.TempDir(), "pid")
	q.assign("p1", shell("echo $$ > "+file+"; sleep 1000"))
	pid := number(t, file)
	q.http.Close()
	if err := p.wait(); err == nil {
		t.Error("the pilot ended as if all were well")
	}
	gone(t, pid)
}

// The folder of the sandboxes goes while there is no server: a server that comes
// later must not get this pilot, where each attempt would fail.
func TestFolderRemoved(t *testing.T) {
	q := newTaskQueue(t)
	p := q.start(q.config("p1"))
	file := filepath.Join(t.TempDir(), "pid")
	q.assign("p1", shell("echo $$ > "+file+"; sleep 1000"))
	pid := number(t, file)
	q.http.Close()
	if err := removeAll(q.folder + "/sandbox"); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err == nil {
		t.Error("the pilot ended as if all were well")
	}
	gone(t, pid)
}

// The pilot says for how long it lets jobs run, and not for how long it lives: a job that
// declares all of its life would be ended at the grace before its end.
func TestGraceIsNotOfTheRemainingLife(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Life, cfg.Grace = time.Hour, 10*time.Minute
	q.start(cfg)
	q.until("hello", func() bool { return q.pilot("p1").hello != nil })
	q.mu.Lock()
	defer q.mu.Unlock()
	if left := q.pilot("p1").hello.GetRemaining().AsDuration(); left > 40*time.Minute || left < 30*time.Minute {
		t.Errorf("%v remain of an hour, of which twice 10 minutes are for ending jobs", left)
	}
}

func TestLifeEnds(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Life, cfg.Grace = time.Second, 100*time.Millisecond
	p := q.start(cfg)
	a := shell("sleep 1000")
	q.assign("p1", a)
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_LOST, "life is over")
	if err := p.wait(); err != nil {
		t.Error(err)
	}
}
