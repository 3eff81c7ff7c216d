package dispatch

import (
	"fmt"
	"runtime"
	"testing"

	"fairway/internal/taskqueue"
)

// withRun returns a Core with one run, which goes on after failures.
func withRun(t testing.TB, config taskqueue.Config) *Core {
	t.Helper()
	c, _ := New(config)
	if _, err := c.Step(epoch, taskqueue.SetRun{Run: taskqueue.Run{ID: 1, KeepGoing: true}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Runs that were retired leave nothing in memory: not their jobs, files and names, nor
// the rows that they stood in.
func TestRetirementGivesMemoryBack(t *testing.T) {
	const jobs, cycles = 20_000, 5
	c, _ := New(taskqueue.Config{})
	step := func(in taskqueue.Input) taskqueue.Effects {
		t.Helper()
		e, err := c.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	var empty, full, retired []float64
	seq := uint64(1)
	step(taskqueue.Sync{Pilot: "p", Seq: seq, Full: true, Hello: &taskqueue.PilotInfo{Host: "h",
		Has: taskqueue.Resources{MilliCPUs: 1000}}})
	for range cycles {
		empty = append(empty, heapInUse())
		run := c.NextRun()
		step(taskqueue.SetRun{Run: taskqueue.Run{ID: run, KeepGoing: true}})
		in := taskqueue.Submit{Run: run}
		for i := range jobs {
			in.Jobs = append(in.Jobs, taskqueue.Job{Name: fmt.Sprint("job", i), Step: "s",
				Writes: []taskqueue.Output{{LFN: fmt.Sprint("out", i)}}})
		}
		step(in)
		seq++
		a := step(taskqueue.Sync{
			Pilot: "p", Seq: seq, LastAnswer: c.journal.incarnation<<32 | c.fleet.numbers.lastAnswer,
		}).Replies[0].Answer.Run[0]
		out := taskqueue.WrittenFile{LFN: a.Outputs[0].LFN, Version: 1, PFN: fmt.Sprint("se:", a.Attempt)}
		seq++
		step(taskqueue.Sync{Pilot: "p", Seq: seq, LastAnswer: 1 << 40, Draining: true, Ended: []taskqueue.Result{
			{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{out}},
		}})
		full = append(full, heapInUse())
		step(taskqueue.StopRun{Run: run})
		in.Jobs = nil
		seq++
		step(taskqueue.Sync{
			Pilot: "p", Seq: seq, Full: true, Hello: &taskqueue.PilotInfo{Host: "h",
				Has: taskqueue.Resources{MilliCPUs: 1000}}, LastAnswer: 1 << 40,
		})
		if e := step(taskqueue.RetireRun{Run: run}); len(e.Remove) != 1 {
			t.Fatalf("%d stored files are removed, not that of the one job that was done", len(e.Remove))
		}
		step(taskqueue.Removed{PFN: out.PFN})
		retired = append(retired, heapInUse())
	}
	for i := range cycles {
		took := full[i] - empty[i]
		t.Logf("run %d took %.0f bytes for each job, of which %.1f are left", i+1, took/jobs, (retired[i]-empty[0])/jobs)
		if left := retired[i] - empty[0]; left > took/10 {
			t.Errorf("of %.0f bytes of run %d, %.0f are left", took, i+1, left)
		}
		if more := retired[i] - retired[0]; i > 1 && more > took/20 {
			t.Errorf("after run %d, %.0f bytes are left that were not after the first", i+1, more)
		}
	}
}

func heapInUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
