package pilot

import (
	"os"
	"path/filepath"
	"testing"
	"time"

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
