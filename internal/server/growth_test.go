package server

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// A server that runs ever other jobs does not grow: what it knows of them goes with their runs, but
// for the results that it keeps. Those that a kept run names are not among them.
func TestServerDoesNotGrow(t *testing.T) {
	if os.Getenv("FAIRWAY_SOAK") == "" {
		t.Skip("it takes a minute; FAIRWAY_SOAK=1 runs it")
	}
	const jobs, rounds, keep = 1000, 6, 500
	v := startServiceAs(t, t.TempDir(), func(a *wire.Assignment, _ func(string) string) (map[string]string, int) {
		return map[string]string{a.GetOutputs()[0].GetLfn(): "made"}, 0
	}, func(c *Config) { c.UnusedResults, c.Dispatch.Retention = keep, time.Hour })
	defer v.stop()
	var heap []int64
	for round := range rounds {
		run := v.submit("workflow: w\nopen: true\n", t.TempDir(), nil)
		request := &wire.SubmitRequest{Run: run}
		for i := range jobs {
			name := fmt.Sprintf("round%d/job%d", round, i)
			request.Jobs = append(request.Jobs, &wire.SubmittedJob{
				Name: name, Payload: &wire.Payload{Shell: "make " + name}, Writes: []*wire.SubmittedOutput{{Lfn: name}},
			})
		}
		if _, err := v.client.Submit(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if _, err := v.client.CloseInput(t.Context(), &wire.CloseInputRequest{Run: run}); err != nil {
			t.Fatal(err)
		}
		if end := v.await(run); !end.GetSucceeded() {
			t.Fatal(end)
		}
		v.retired(taskqueue.RunID(run))
		if _, err := v.server.RemoveRun(t.Context(), taskqueue.RunID(run), false); err != nil {
			t.Fatal(err)
		}
		for changed := v.server.loop.Changes(); resultsOf(t, v) > keep; changed = v.server.loop.Changes() {
			<-changed
		}
		runtime.GC()
		runtime.GC() // what pools held
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		heap = append(heap, int64(memory.HeapAlloc))
	}
	t.Logf("heap after each %d jobs: %d kB", jobs, kilobytes(heap))
	// The first rounds fill what is used again. 200 bytes a job would be the least that is left of one.
	if grown := heap[rounds-1] - heap[1]; grown > (rounds-2)*jobs*200 {
		t.Errorf("the server has grown by %d bytes in %d jobs", grown, (rounds-2)*jobs)
	}
}

func kilobytes(bytes []int64) (all []int64) {
	for _, n := range bytes {
		all = append(all, n/1000)
	}
	return all
}

func resultsOf(t *testing.T, v *service) (n int) {
	t.Helper()
	err := v.server.inbox.Query(t.Context(), func(c *state.Cores) { n = c.Dispatch.Results() })
	if err != nil {
		t.Fatal(err)
	}
	return n
}
