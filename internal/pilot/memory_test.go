package pilot

import (
	"os"
	"runtime"
	"testing"

	"fairway/internal/wire"
)

func TestOutOfMemory(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	r := q.run("p1", shell("head -c 200000000 /dev/zero | tail", needs(&wire.Resources{MemoryBytes: 50 << 20})))
	expect(t, r, wire.Outcome_OUTCOME_OUT_OF_MEMORY, "more than its 52.4 MB")
	r = q.run("p1", shell("head -c 150000000 /dev/zero | tail > file", needs(&wire.Resources{MemoryBytes: 400 << 20})))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if r.GetUsage().GetMaxRssBytes() < 100<<20 {
		t.Error(r.GetUsage())
	}
	if r = q.run("p1", shell("true")); r.GetUsage().GetMaxRssBytes() != 0 {
		t.Error("the memory of the pilot is held to be that of the command:", r.GetUsage())
	}
}

// What the process that started the pilot had of memory says nothing of the
// commands.
func TestMemoryOfTheStarterIsNotThePilots(t *testing.T) {
	large := make([]byte, 200<<20)
	for i := 0; i < len(large); i += os.Getpagesize() {
		large[i] = 1
	}
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	runtime.KeepAlive(large)
	r := q.run("p1", shell("head -c 150000000 /dev/zero | tail > file"))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := r.GetUsage().GetMaxRssBytes(); got < 100<<20 || got >= 200<<20 {
		t.Error(r.GetUsage())
	}
	if r = q.run("p1", shell("true")); r.GetUsage().GetMaxRssBytes() != 0 {
		t.Error("the memory of the pilot is held to be that of the command:", r.GetUsage())
	}
}
