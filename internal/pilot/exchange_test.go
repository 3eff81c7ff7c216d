package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"fairway/internal/cache"
	"fairway/internal/logical"
	"fairway/internal/wire"
)

// The server goes away and comes back, with no memory of what it knew: jobs go
// on, and the pilot tells its whole state.
func TestReconnect(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	go1, go2 := filepath.Join(t.TempDir(), "go"), filepath.Join(t.TempDir(), "go")
	wait := func(file string) string { return "while ! [ -e " + file + " ]; do sleep 0.01; done" }
	first, second, third := shell(wait(go1)), shell(wait(go2)), shell("true")
	q.assign("p1", first, second, third)
	q.started("p1", first.GetAttempt())
	q.started("p1", second.GetAttempt())
	q.http.Close()
	if err := os.WriteFile(go1, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	q.change(func() { q.pilots, q.results = map[string]*pilotSeen{}, map[uint64]*wire.Result{} })
	q.serve()
	expect(t, q.result(first.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.result(third.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.until("hello", func() bool { return q.pilot("p1").hello != nil && q.pilot("p1").started[second.GetAttempt()] })
	if err := os.WriteFile(go2, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(second.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// The first Sync after a failure is not held: until it is answered no other may
// follow, and a result would wait as long as a server without news holds it.
func TestFirstSyncAfterAFailureIsNotHeld(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	proceed := filepath.Join(t.TempDir(), "go")
	a := shell("while ! [ -e " + proceed + " ]; do sleep 0.01; done")
	q.assign("p1", a)
	q.started("p1", a.GetAttempt())
	q.http.Close()
	q.change(func() { q.pilots, q.silent, q.hold = map[string]*pilotSeen{}, true, 2*patience })
	q.serve()
	q.until("the whole state", func() bool { return q.pilot("p1").hello != nil })
	if err := os.WriteFile(proceed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(a.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.mu.Lock()
	defer q.mu.Unlock()
	if first := q.pilot("p1").syncs[0]; first.GetHold() || !first.GetFull() {
		t.Errorf("the first Sync was %v", first)
	}
}

// A result is told until it is acknowledged, and not after that.
func TestResultsAreToldUntilAcknowledged(t *testing.T) {
	q := newTaskQueue(t)
	q.refuse = true
	q.start(q.config("p1"))
	a := shell("true")
	q.run("p1", a)
	q.change(func() { q.results, q.pilot("p1").news = map[uint64]*wire.Result{}, true })
	q.result(a.GetAttempt())
	q.change(func() { q.refuse, q.pilot("p1").news = false, true })
	q.run("p1", shell("true"))
	q.change(func() { q.results = map[uint64]*wire.Result{} })
	q.run("p1", shell("true"))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.results[a.GetAttempt()] != nil {
		t.Error("told again after it was acknowledged")
	}
}

// A pilot that is cut off notices it by the call that nobody answers: that one must not
// outlast the lease, after which the server has its jobs run elsewhere.
func TestNoCallOutlastsTheLease(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, CallMargin, DefaultFarLease} {
		x := exchange{patience: 25 * time.Second, lease: lease}
		if wait := x.answerTime(); wait <= x.patience || wait > x.patience+min(lease, CallMargin) {
			t.Errorf("with a lease of %v a call waits for %v", lease, wait)
		}
	}
}

// A pilot that comes back to a server tells a digest of its cache, and all of it only to
// one that asks for that.
func TestCacheIsToldByItsDigest(t *testing.T) {
	const files, request = 2 * fewCached, 7
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 1 << 20}
	q.start(cfg)
	var outputs []func(*wire.Assignment)
	for i := range files {
		outputs = append(outputs, writes(fmt.Sprint("f", i)))
	}
	a := shell(fmt.Sprintf("for i in $(seq 0 %d); do echo $i >f$i; done", files-1), outputs...)
	expect(t, q.run("p1", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
	q.until("the files", func() bool { return len(q.pilot("p1").cached) == files })
	expect(t, q.run("p1", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "") // whose assignment acknowledges them
	q.http.Close()
	q.change(func() {
		q.pilots = map[string]*pilotSeen{"p1": {started: map[uint64]bool{}, cached: map[string]bool{}, tell: request}}
	})
	q.serve()
	q.until("all of the cache", func() bool { return q.pilot("p1").tell == 0 })
	var want logical.Copies
	for i := range files {
		want.Add(fmt.Sprint("f", i), 1, a.GetAttempt())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.pilot("p1")
	first := p.syncs[slices.IndexFunc(p.syncs, (*wire.SyncRequest).GetFull)] // others may have been under way
	if first.GetCache().GetFiles() != want.Files || first.GetCache().GetSum() != want.Sum ||
		len(first.GetCacheAdded()) > 0 {
		t.Errorf("the whole state was told with the digest %v and %d files", first.GetCache(), len(first.GetCacheAdded()))
	}
	if len(p.cached) != files {
		t.Errorf("%d files were told", len(p.cached))
	}
}

// A cache of 100,000 files is told in messages of bounded size, each file once it was
// acknowledged no more, and one that was lost is told again.
func TestAllOfACacheIsToldInParts(t *testing.T) {
	const files = 100_000
	c := caching{changes: map[cache.Ref]*fileChange{}, telling: 3}
	var whole int
	for i := range files {
		change := cache.Change{Ref: cache.Ref{
			LFN: fmt.Sprintf("raw/run%06d/reads.%d.fq.gz", i, i%2), Version: 1, Tag: uint64(i) << 40,
		}, Size: 1 << 20}
		c.changes[change.Ref] = &fileChange{Change: change}
		var m wire.SyncRequest
		c.changes[change.Ref].announce(&m, change.Ref)
		whole += proto.Size(&m)
	}
	told, longest := map[string]bool{}, 0
	var seq, calls uint64
	for done := false; !done; calls++ {
		seq++
		m := &wire.SyncRequest{Seq: seq}
		c.carry(m)
		longest = max(longest, proto.Size(m))
		if len(m.GetCacheAdded()) > maxCacheTold {
			t.Fatalf("%d files in a message", len(m.GetCacheAdded()))
		}
		if seq%5 == 3 {
			continue // it is lost
		}
		for _, f := range m.GetCacheAdded() {
			told[f.GetFile().GetLfn()] = true
		}
		c.acknowledge(seq)
		if done = m.GetCacheTold() != 0; done && (m.GetCacheTold() != 3 || len(told) != files || len(c.changes) != 0) {
			t.Errorf("%d files are said to be all, at the request %d", len(told), m.GetCacheTold())
		}
	}
	digest := proto.Size(&wire.SyncRequest{Cache: &wire.CacheDigest{Files: files, Sum: 1 << 63}})
	t.Logf("%d files: %d bytes at once, now %d calls of at most %d bytes, or a digest of %d", files, whole, calls,
		longest, digest)
}

// 10,000 pilots that lose their server at the same moment do not come back at the same
// moment, and each would come back at the same moments again.
func TestPilotsComeBackOneAfterTheOther(t *testing.T) {
	const pilots, away, part = 10_000, time.Minute, 100 * time.Millisecond
	back := func(name string) (at time.Duration) {
		for x := (exchange{jitter: jitter(name)}); at < away; {
			at += x.nextPause(MaxFarBackoff)
		}
		return at - away
	}
	calls := map[time.Duration]int{}
	for i := range pilots {
		name := fmt.Sprintf("cluster.%d-0", i)
		at := back(name)
		if again := back(name); again != at {
			t.Fatalf("%s comes back after %v, and after %v", name, at, again)
		}
		calls[at/part]++
	}
	most := 0
	for _, n := range calls {
		most = max(most, n)
	}
	if even := pilots * int(part) / int(MaxFarBackoff); most > 4*even {
		t.Errorf("%d pilots come back within %v, evenly that would be %d", most, part, even)
	}
}

// An answer of a server that another one has replaced does not count: it may have been frozen, and gives
// out work that is another pilot's by now. The pilot says which term it has seen.
func TestAnAnswerOfALowerTermDoesNotCount(t *testing.T) {
	q := newTaskQueue(t)
	q.change(func() { q.term = 7 })
	q.start(q.config("p1"))
	expect(t, q.run("p1", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
	late := shell("touch " + filepath.Join(t.TempDir(), "late"))
	syncs := 0
	q.change(func() {
		q.term, syncs = 6, len(q.pilot("p1").syncs)
		q.pilot("p1").run, q.pilot("p1").news = []*wire.Assignment{late}, true
	})
	q.until("it asks again, twice", func() bool { return len(q.pilot("p1").syncs) > syncs+2 })
	q.change(func() {
		if q.pilot("p1").started[late.GetAttempt()] || q.results[late.GetAttempt()] != nil {
			t.Error("it has begun what a server of a lower term has given out")
		}
		if term := q.pilot("p1").syncs[len(q.pilot("p1").syncs)-1].GetTerm(); term != 7 {
			t.Error("it says that it has seen the term", term)
		}
		q.term, q.pilot("p1").run = 8, nil
	})
	expect(t, q.run("p1", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
}
