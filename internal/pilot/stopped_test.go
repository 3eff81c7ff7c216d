package pilot

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"fairway/internal/pilot/process"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// stands waits until a process has been stopped.
func (p *pilotProcess) stands() {
	p.t.Helper()
	stopped := sched.Register(sched.Default(),
		sched.Kind[int, struct{}]{Name: "stopped", Poll: func(waiting []*sched.Request[int, struct{}]) {
			for _, r := range waiting {
				if fields := process.StatOf(r.Value); len(fields) > 0 && fields[0] == "T" {
					r.Done(struct{}{}, nil)
				}
			}
		}})
	if _, err := stopped.Wait(p.t.Context(), p.Process.Pid); err != nil {
		p.t.Fatal(err)
	}
}

// A pilot that is stopped while it holds the lock of the host's caches holds up no other
// pilot there: it goes on talking and working, past its cache, and says so. When the lock is
// free again, it uses the cache again.
func TestStoppedPilotHoldsUpNoOther(t *testing.T) {
	q := newTaskQueue(t)
	input := writeFile(t, "input")
	config := func(id string) Config {
		cfg := q.config(id)
		cfg.Cache = CacheConfig{Mode: CacheHost, Dir: q.folder + "/cache"}
		cfg.SandboxDir = fmt.Sprintf("%s/sandbox-%s", q.folder, id)
		return cfg
	}
	other := q.start(config("other"))
	q.until("the other pilot", func() bool { return q.pilot("other").hello != nil })
	stopped := q.start(config("stopped"), "FAIRWAY_FAULT=cache.add.named:1:pause")
	held := shell("echo x > x", writes("x"))
	q.assign("stopped", held)
	stopped.stands()

	job := func(n int) (a *wire.Assignment, output string) {
		output = fmt.Sprint("out", n)
		return shell("cat in > "+output, reads("in", 1, 5, input), writes(output)), output
	}
	for n := range 3 {
		a, output := job(n)
		expect(t, q.run("other", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
		var cached bool
		q.change(func() { cached = q.pilot("other").cached[output+"@1"] })
		if cached {
			t.Errorf("%s was put into the cache without the lock", output)
		}
	}
	if log := q.pilotLogs(); strings.Count(log, "another pilot of this host holds the lock of the caches and does not "+
		"go on") != 1 {
		t.Errorf("the pilot does not say once that it waits:\n%s", log)
	}

	if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	expect(t, q.result(held.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
	for n, cached := 3, false; !cached; n++ { // the other pilot learns a moment later that the lock is free
		a, output := job(n)
		expect(t, q.run("other", a), wire.Outcome_OUTCOME_SUCCEEDED, "")
		q.change(func() { cached = q.pilot("other").cached[output+"@1"] })
	}
	other.stop()
	stopped.stop()
}
