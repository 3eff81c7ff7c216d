package pilot

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"fairway/internal/wire"
)

// A file that was damaged in the cache of a pilot that is gone reaches no job: not an
// output of a job, and not a file from another server, whose checksum only the pilots
// know.
func TestDamagedCacheIsNoHitForTheNextPilot(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			asked.Add(1)
		}
		_, _ = w.Write([]byte("from afar"))
	}))
	defer server.Close()
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CacheHost, Dir: q.folder + "/cache", MaxSpace: 1000}
	first := q.start(cfg)
	written := q.run("p1", shell("printf 'from here' >y", writes("y")))
	expect(t, written, wire.Outcome_OUTCOME_SUCCEEDED, "")
	afar := reads("x", 1, 9, server.URL+"/x")
	expect(t, q.run("p1", shell("test \"$(cat x y)\" = 'from afarfrom here'", afar, made(written))),
		wire.Outcome_OUTCOME_SUCCEEDED, "")
	first.stop()
	_ = first.wait()

	cached, err := filepath.Glob(cfg.Cache.Dir + "/*/[xy]@*")
	if err != nil || len(cached) != 2 {
		t.Fatal(cached, err)
	}
	for _, path := range cached {
		// Not in place: the storage element has a link to what was written.
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("somewhere"), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	cfg = q.config("p2")
	cfg.Cache = CacheConfig{Mode: CacheHost, Dir: q.folder + "/cache", MaxSpace: 1000}
	q.start(cfg)
	expect(t, q.run("p2", shell("test \"$(cat x y)\" = 'from afarfrom here'", afar, made(written))),
		wire.Outcome_OUTCOME_SUCCEEDED, "")
	if asked.Load() != 2 {
		t.Error("the file was read", asked.Load(), "times from its server")
	}
}

// A server that has taken over a pilot stores outputs at another place than the one
// that started it.
func TestOutputsAreStoredWhereTheServerOfTheAttemptSays(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	before, after := shell("echo a > a", writes("a")), shell("echo b > b", writes("b"))
	after.Storage = "file:" + q.folder + "/other/"
	for a, place := range map[*wire.Assignment]string{before: "/se/", after: "/other/"} {
		q.assign("p1", a)
		r := q.result(a.GetAttempt())
		expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
		pfn := r.GetOutputs()[0].GetPfn()
		if !strings.HasPrefix(pfn, "file:"+q.folder+place) {
			t.Errorf("stored as %s", pfn)
		}
	}
}
