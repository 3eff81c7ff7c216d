package pilot

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/fault"
	"fairway/internal/wire"
)

// Wherever a pilot is killed, the next one on the host runs what it left
// undone, and nothing that is half-written is ever seen.
func TestCrashAtEachFaultPoint(t *testing.T) {
	// not on this way
	never := []string{
		"storage.put.written", "storage.get.written", "cache.drop.before", "cache.drop.after", "pilot.folder.unlocked",
	}
	for _, point := range fault.Names() {
		if slices.Contains(never, point) {
			continue
		}
		t.Run(point, func(t *testing.T) {
			q := newTaskQueue(t)
			input := writeFile(t, "input")
			command := shell("cat in > out", reads("in", 1, 5, input), writes("out"))
			cfg := q.config("killed")
			cfg.Cache = CacheConfig{Mode: CacheHost, Dir: q.folder + "/cache"}
			p := q.start(cfg, "FAIRWAY_FAULT="+point)
			q.assign("killed", command)
			if p.wait() == nil {
				t.Fatal("the point was not reached")
			}
			q.change(func() { delete(q.results, command.GetAttempt()) })
			cfg.Pilot = "next" + q.mark()
			q.start(cfg)
			again := shell("cat in > out", reads("in", 1, 5, input), writes("out"))
			r := q.run("next", again)
			expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
			stored, _ := filepath.Glob(q.folder + "/se/out.*")
			for _, path := range stored {
				if contents(t, path) != "input" {
					t.Error(path, "is not complete")
				}
			}
			cached, _ := filepath.Glob(q.folder + "/cache/next" + q.mark() + "/[^.]*")
			if len(cached) < 2 || len(cached) > 3 { // what each attempt wrote is one of its own
				t.Error(cached)
			}
			for _, path := range cached {
				if contents(t, path) != "input" {
					t.Error(path, "is not complete")
				}
			}
			if _, err := os.Stat(q.folder + "/cache/killed" + q.mark()); err == nil {
				t.Error("the cache of the killed pilot is not taken over")
			}
		})
	}
}

// A pilot that is killed before its folder has a lock, or when the lock has gone, leaves a
// folder that would belong to nobody.
func TestKilledAsItsFolderComesOrGoes(t *testing.T) {
	for _, point := range []string{"pilot.folder.made", "pilot.folder.unlocked"} {
		t.Run(point, func(t *testing.T) {
			q := newTaskQueue(t)
			p := q.start(q.config("killed"), "FAIRWAY_FAULT="+point)
			if point == "pilot.folder.unlocked" {
				expect(t, q.run("killed", shell("echo > left")), wire.Outcome_OUTCOME_SUCCEEDED, "")
				q.change(func() { q.pilot("killed").leave, q.pilot("killed").news = true, true })
			}
			if p.wait() == nil {
				t.Fatal("the point was not reached")
			}
			if err := CleanUp(q.folder+"/sandbox", slog.Default()); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(q.folder + "/sandbox"); len(left) > 0 || err != nil {
				t.Error(left, err)
			}
		})
	}
}

func TestCachedInputs(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 1000}
	p := q.start(cfg)
	first := q.run("p1", shell("cp in out", reads("in", 1, 5, writeFile(t, "input")), writes("out")))
	expect(t, first, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if u := first.GetUsage(); u.GetCacheMisses() != 1 || u.GetBytesStaged() != 5 || u.GetBytesWritten() != 5 {
		t.Error(u)
	}
	second := q.run("p1", shell("cmp in out; ! [ -w out ]", reads("in", 1, 5, "/gone"), made(first)))
	expect(t, second, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if u := second.GetUsage(); u.GetCacheHits() != 2 || u.GetBytesCached() != 10 {
		t.Error(u)
	}
	q.until("report of the cache", func() bool { return q.pilot("p1").cached["in@1"] && q.pilot("p1").cached["out@1"] })

	// Only in caches: it is not stored, and read from the cache alone.
	only := shell("echo only > kept", writes("kept"))
	only.Outputs[0].CacheOnly = true
	r := q.run("p1", only)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if r.GetOutputs()[0].GetPfn() != "" {
		t.Error(r.GetOutputs())
	}
	onlyCached := made(r)
	expect(t, q.run("p1", shell("grep only kept", onlyCached)), wire.Outcome_OUTCOME_SUCCEEDED, "")

	// What does not fit is read past the cache, and stored if it would be lost.
	large := shell("head -c 2000 /dev/zero > large", writes("large"))
	large.Outputs[0].CacheOnly = true
	r = q.run("p1", large)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.run("p1", shell("wc -c large", made(r))), wire.Outcome_OUTCOME_SUCCEEDED, "")

	// A later pilot finds what an earlier one has left.
	p.stop()
	cfg.Pilot = "p2" + q.mark()
	q.start(cfg)
	expect(t, q.run("p2", shell("grep only kept", onlyCached)), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// Another attempt's output of the same name is none of what is asked for.
func TestUncommittedCopyIsNotRead(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 1000}
	q.start(cfg)
	only := shell("echo only > kept", writes("kept"))
	only.Outputs[0].CacheOnly = true
	r := q.run("p1", only)
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	r.Attempt++
	expect(t, q.run("p1", shell("cat kept", made(r))), wire.Outcome_OUTCOME_INPUT_LOST, "in no cache of this host")
}

// A file from outside is read only while it is what the run took up: in the
// cache, where it is a link, past the cache, and at its own place.
func TestInputIsTheOneThatWasTakenUp(t *testing.T) {
	for _, mode := range []CacheMode{CachePilot, CacheNone} {
		q := newTaskQueue(t)
		cfg := q.config("p1")
		cfg.Cache = CacheConfig{Mode: mode, Dir: q.folder + "/cache", MaxSpace: 1000}
		q.start(cfg)
		file := writeFile(t, "input")
		asFound := tagged(t, reads("in", 0, 5, file), file)
		expect(t, q.run("p1", shell("grep input in", asFound)), wire.Outcome_OUTCOME_SUCCEEDED, "")
		if err := os.WriteFile(file, []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		expect(t, q.run("p1", shell("true", asFound)), wire.Outcome_OUTCOME_INPUT_CHANGED,
			file+" has changed since this run took it up")
		now := tagged(t, reads("in", 0, 5, file), file)
		expect(t, q.run("p1", shell("grep other in", now)), wire.Outcome_OUTCOME_SUCCEEDED, "")
		if err := os.Rename(writeFile(t, "third"), file); err != nil {
			t.Fatal(err)
		}
		r := q.run("p1", shell("grep other in", now))
		if mode == CacheNone {
			expect(t, r, wire.Outcome_OUTCOME_INPUT_CHANGED, file)
		} else {
			expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "") // the cache still has what was taken up
		}
	}
}

func TestEvictionAndPrefetch(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 12}
	q.start(cfg)
	file := writeFile(t, "input")
	in := func(lfn string) *wire.InputFile {
		return &wire.InputFile{File: &wire.FileRef{Lfn: lfn, Version: 1}, Size: 5, Pfn: file}
	}
	q.change(func() {
		p := q.pilot("p1")
		p.pre, p.news = []*wire.InputFile{in("a"), in("b")}, true
	})
	q.until("prefetch", func() bool { return q.pilot("p1").cached["a@1"] && q.pilot("p1").cached["b@1"] })
	q.change(func() {
		p := q.pilot("p1")
		p.pre, p.evict, p.news = nil, []*wire.FileRef{{Lfn: "b", Version: 1}}, true
	})
	q.run("p1", shell("true"))
	r := q.run("p1", shell("cat c", reads("c", 1, 5, file)))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.until("eviction in the order of the hints", func() bool {
		p := q.pilot("p1")
		return p.cached["a@1"] && p.cached["c@1"] && !p.cached["b@1"]
	})
}

// However many files are to be fetched ahead of their jobs, few come at a time: the storage
// is for the jobs that run.
func TestFewFilesAreFetchedAheadAtATime(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 1000}
	q.start(cfg)
	asked, release := make(chan string, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			asked <- r.URL.Path
			<-release
		}
		http.ServeContent(w, r, "", time.Unix(1_700_000_000, 0), strings.NewReader("input"))
	}))
	t.Cleanup(server.Close)
	var ahead []*wire.InputFile
	for _, lfn := range []string{"a", "b", "c", "d"} {
		ahead = append(ahead, &wire.InputFile{
			File: &wire.FileRef{Lfn: lfn, Version: 1}, Size: 5, Pfn: server.URL + "/" + lfn,
		})
	}
	q.change(func() { p := q.pilot("p1"); p.pre, p.news = ahead, true })
	<-asked
	<-asked
	q.run("p1", shell("true")) // the list is told again with each answer
	q.run("p1", shell("true"))
	if n := len(asked); n > 0 {
		t.Errorf("%d files more are fetched at the same time", n)
	}
	close(release)
	q.until("the first two", func() bool { return len(q.pilot("p1").cached) == 2 })
	q.change(func() { p := q.pilot("p1"); p.pre, p.news = ahead[2:], true })
	q.until("the others", func() bool { return len(q.pilot("p1").cached) == 4 })
}

// startTogether starts pilots a and b, which share the cache of their host.
func (q *taskQueue) startTogether() {
	for _, id := range []string{"a", "b"} {
		cfg := q.config(id)
		cfg.Cache = CacheConfig{Mode: CacheHost, Dir: q.folder + "/cache", MaxSpace: 1000}
		q.start(cfg)
	}
	q.until("both pilots", func() bool {
		return q.pilot("a").hello.GetCacheDir() != "" && q.pilot("b").hello.GetCacheDir() != ""
	})
	q.change(func() {
		peers := []*wire.Peer{{CacheDir: q.pilot("a").hello.GetCacheDir()}, {CacheDir: q.pilot("b").hello.GetCacheDir()}}
		for _, p := range q.pilots {
			p.peers, p.news = peers, true
		}
	})
}

// A file that one pilot of a host has fetched ahead and another one reads first is told by
// that one, once, with the time that nobody has waited for it.
func TestFileFetchedAheadByANeighbour(t *testing.T) {
	q := newTaskQueue(t)
	q.startTogether()
	input := writeFile(t, "input")
	q.change(func() {
		p := q.pilot("a")
		p.pre, p.news = []*wire.InputFile{{File: &wire.FileRef{Lfn: "in", Version: 1}, Size: 5, Pfn: input}}, true
	})
	q.until("link", func() bool { return q.pilot("b").cached["in@1"] })
	for n, at := range []string{"b", "a", "b"} {
		u := q.run(at, shell("cat in", reads("in", 1, 5, input))).GetUsage()
		first := n == 0
		if u.GetCacheHits() != 1 || (u.GetPrefetchHits() == 1) != first || (u.GetBytesPrefetched() == 5) != first ||
			first && u.GetStagedAhead().AsDuration() <= 0 {
			t.Errorf("reader %d says %v", n+1, u)
		}
	}
	q.until("counts", func() bool { return q.pilot("a").counts.GetPrefetchedFiles() == 1 })
}

// Two real pilots of one host: what one has staged in or written, the other
// reads from the host.
func TestSharedCache(t *testing.T) {
	q := newTaskQueue(t)
	q.startTogether()
	kept := shell("echo kept > kept; cat in", reads("in", 1, 5, writeFile(t, "input")), writes("kept"))
	kept.Outputs[0].CacheOnly = true
	first := q.run("a", kept)
	expect(t, first, wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.until("links", func() bool { return q.pilot("b").cached["in@1"] && q.pilot("b").cached["kept@1"] })
	r := q.run("b", shell("cat in kept", reads("in", 1, 5, "/gone"), made(first)))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if r.GetUsage().GetCacheHits() != 2 {
		t.Error(r.GetUsage())
	}
}
