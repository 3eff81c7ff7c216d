package pilot

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/access"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

// farNode is a pilot that reaches its server over a network, and what the server has.
type farNode struct {
	*taskQueue
	authority *access.Authority
	roots     storage.Roots // of the server
	logs      string
	pilot     string
	carried   atomic.Int64 // requests for files
}

// newFarNode starts a pilot whose folders, and those of the server, are given.
func newFarNode(t *testing.T, server, node storage.Roots, logs string) *farNode {
	t.Helper()
	n := &farNode{taskQueue: newTaskQueue(t), roots: server, logs: t.TempDir()}
	authority, err := access.OpenAuthority(filepath.Join(n.folder, "authority"), "id")
	if err != nil {
		t.Fatal(err)
	}
	n.authority = authority
	var marks []served.Mark
	for _, prefix := range []string{"state:", "folder:", "file:" + n.logs + "/"} {
		m, err := served.NewMark(server, prefix, ".")
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, m)
	}
	all := storage.Local(server)
	all[served.LogScheme] = served.Logs(n.logs)
	handler := served.NewHandler(served.Config{
		Element: all, Unfinished: filepath.Join(server.State, "unfinished"), Authority: authority.FileKey(), Launch: launchOf,
		Marks: marks,
	})
	n.files = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, served.Prefix+"read") && r.Method == http.MethodGet || r.Method == http.MethodPut {
			n.carried.Add(1)
		}
		handler.ServeHTTP(w, r)
	})
	file, _ := n.far(access.NewTokens(), "cluster.1", 0)
	cfg := n.config("x")
	cfg.Server, cfg.Pilot, cfg.Launch, cfg.Site = "", "", "", ""
	cfg.Storage, cfg.Element, cfg.Workflow = "state:", node.State, node.Folder
	cfg.LogDir, cfg.LogPause = logs, 10*time.Millisecond
	if logs == "" {
		cfg.LogDir = n.logs
	}
	n.start(cfg, connectVariable+"="+file)
	n.until("a pilot", func() bool {
		for n.pilot = range n.pilots {
		}
		return n.pilot != ""
	})
	return n
}

// does runs an attempt with tickets for its files.
func (n *farNode) does(a *wire.Assignment) *wire.Result {
	n.t.Helper()
	access.GrantFiles(n.authority.FileKey(), "cluster.1", "state:", &wire.SyncAnswer{Run: []*wire.Assignment{a}})
	return n.run(n.pilot, a)
}

// input is a file of the server, as it is assigned.
func (n *farNode) input(lfn, pfn string) func(*wire.Assignment) {
	n.t.Helper()
	info, err := storage.Local(n.roots).Stat(n.t.Context(), pfn)
	if err != nil {
		n.t.Fatal(err)
	}
	return func(a *wire.Assignment) {
		reads(lfn, 0, info.Size, pfn)(a)
		a.Inputs[len(a.Inputs)-1].File.Tag = storage.TagOf(pfn, info)
	}
}

func (n *farNode) printed(a *wire.Assignment, stream string) string {
	n.t.Helper()
	return contents(n.t, filepath.Join(n.logs, logName(a.GetAttempt(), stream)))
}

// A pilot that shares no folder with its server gets all inputs through it, and
// stores all outputs and what was printed there.
func TestNothingIsShared(t *testing.T) {
	server := storage.Roots{State: t.TempDir(), Folder: t.TempDir()}
	elsewhere := filepath.Join(t.TempDir(), "outside")
	files.Write(t, filepath.Join(server.Folder, "in/a"), "a")
	if err := os.Chmod(
		files.Write(t, filepath.Join(server.Folder, "bin/program"), "#!/bin/sh\necho program\n"), 0o755,
	); err != nil {
		t.Fatal(err)
	}
	files.Write(t, elsewhere, "outside")
	n := newFarNode(t, server, storage.Roots{State: "/no/such/state", Folder: t.TempDir()}, "/proc/no/logs")
	a := shell("cat in/a outside; bin/program > parts/one; cat in/a > parts/two; cat outside > out; chmod +x out; echo "+
		"bad >&2",
		n.input("in/a", "folder:in/a"), n.input("bin/program", "folder:bin/program"), n.input("outside", "file:"+elsewhere),
		writes("out", "parts/*"))
	r := n.does(a)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	stored := map[string]string{}
	for _, o := range r.GetOutputs() {
		path, err := server.Path(o.GetPfn())
		if err != nil {
			t.Fatal(err)
		}
		stored[o.GetLfn()] = contents(t, path)
		if info, err := os.Stat(path); err != nil || (info.Mode()&0o111 != 0) != (o.GetLfn() == "out") {
			t.Error(o.GetLfn(), info.Mode(), err)
		}
	}
	if len(stored) != 3 || stored["out"] != "outside" || stored["parts/one"] != "program\n" || stored["parts/two"] != "a" {
		t.Error(stored)
	}
	if got := n.printed(a, "out"); got != "aoutside" {
		t.Errorf("printed: %q", got)
	}
	if got := n.printed(a, "err"); got != "bad\n" {
		t.Errorf("printed: %q", got)
	}
	if n.carried.Load() < 5 { // two inputs and three outputs
		t.Errorf("%d files went through the server", n.carried.Load())
	}
	second := shell("cat out > again", made(r), writes("again"))
	expect(t, n.does(second), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if left, err := os.ReadDir(filepath.Join(server.State, "unfinished")); err == nil && len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// What a job prints at a node that shares nothing reaches the server while it runs, also
// when the server loses some of it, and whole when it has ended.
func TestFollowedWithoutASharedFolder(t *testing.T) {
	server := storage.Roots{State: t.TempDir(), Folder: t.TempDir()}
	n := newFarNode(t, server, storage.Roots{State: "/no/such/state", Folder: t.TempDir()}, "/proc/no/logs")
	proceed := filepath.Join(t.TempDir(), "go")
	a := shell("for i in 1 2; do echo line $i; while ! [ -e " + proceed + "$i ]; do sleep 0.01; done; done; echo last; " +
		"echo bad >&2")
	access.GrantFiles(n.authority.FileKey(), "cluster.1", "state:", &wire.SyncAnswer{Run: []*wire.Assignment{a}})
	n.assign(n.pilot, a)
	log := filepath.Join(n.logs, logName(a.GetAttempt(), "out")) + served.LiveEnding
	for i, want := range []string{"line 1\n", "line 1\nline 2\n"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := sched.Default().WaitFile(ctx, sched.FileQuery{Path: log, Until: func(sched.FileState) bool {
			text, err := os.ReadFile(log)
			return err == nil && string(text) == want
		}})
		if err != nil {
			t.Fatalf("line %d does not come while the job runs: %v\n%s", i+1, err, n.pilotLogs())
		}
		if err := os.Truncate(log, 3); err != nil {
			t.Fatal(err)
		}
		files.Write(t, fmt.Sprint(proceed, i+1), "")
	}
	expect(t, n.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := n.printed(a, "out"); got != "line 1\nline 2\nlast\n" {
		t.Errorf("printed: %q", got)
	}
	if got := n.printed(a, "err"); got != "bad\n" {
		t.Errorf("printed: %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(n.logs, "*"+served.LiveEnding)); len(left) > 0 {
		t.Error("left:", left)
	}
}

// What a pilot shares with its server it reads and writes in place.
func TestSharedFoldersAreUsedInPlace(t *testing.T) {
	server := storage.Roots{State: t.TempDir(), Folder: t.TempDir()}
	elsewhere := filepath.Join(t.TempDir(), "outside")
	files.Write(t, filepath.Join(server.Folder, "a"), "a")
	files.Write(t, elsewhere, "outside")
	n := newFarNode(t, server, server, "")
	a := shell("cat a outside | tee out", n.input("a", "folder:a"), n.input("outside", "file:"+elsewhere), writes("out"))
	r := n.does(a)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	path, err := server.Path(r.GetOutputs()[0].GetPfn())
	if err != nil || contents(t, path) != "aoutside" || n.printed(a, "out") != "aoutside" {
		t.Error(path, err)
	}
	if n.carried.Load() > 0 {
		t.Errorf("%d files went through the server", n.carried.Load())
	}
}
