package flow

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// A step says how many tasks begin together, and whether each has a node of its own.
func TestTasksOfSteps(t *testing.T) {
	jobs := made(t, "workflow: w\nsteps:\n  a: {tasks: 3, writes: a, command: x}\n  b: {nodes: 2, once: true, writes: b, "+
		"command: x}\n  c: {writes: c, command: x}\n")
	for step, want := range map[string]taskqueue.Job{
		"a": {Tasks: 3}, "b": {Tasks: 2, Apart: true, Once: true}, "c": {},
	} {
		if got := jobs[step].Job; got.Tasks != want.Tasks || got.Apart != want.Apart || got.Once != want.Once {
			t.Errorf("%s has %d tasks, apart %v, once %v", step, got.Tasks, got.Apart, got.Once)
		}
	}
}

// A pilot has room for as many tasks as the scarcest of its resources suffices for.
func TestRoomOnAPilot(t *testing.T) {
	has := taskqueue.Resources{MilliCPUs: 8000, Memory: 100, Disk: 100, Countable: map[string]int64{"gpu": 3}}
	gpus := func(n int64) map[string]int64 { return map[string]int64{"gpu": n} }
	for _, c := range []struct {
		needs taskqueue.Resources
		want  int
	}{
		{taskqueue.Resources{}, 8},
		{taskqueue.Resources{MilliCPUs: 500}, 16},
		{taskqueue.Resources{MilliCPUs: 3000}, 2},
		{taskqueue.Resources{MilliCPUs: 9000}, 0},
		{taskqueue.Resources{Memory: 20}, 5},
		{taskqueue.Resources{Memory: 101}, 0},
		{taskqueue.Resources{Disk: 40, Memory: 20}, 2},
		{taskqueue.Resources{Countable: gpus(1)}, 3},
		{taskqueue.Resources{Countable: gpus(0)}, 8},
		{taskqueue.Resources{Countable: map[string]int64{"licence": 1}}, 0},
	} {
		d := workflow.Demand{Needs: c.needs}
		if got := d.RoomOn(has); got != c.want {
			t.Errorf("%+v fits %d times, want %d", c.needs, got, c.want)
		}
	}
	small := workflow.Demand{}
	if got := small.RoomOn(taskqueue.Resources{MilliCPUs: 500}); got != 1 {
		t.Errorf("on half a processor %d tasks have room that say nothing", got)
	}
}

// A workflow with another priority has a digest of its own, and keeps the differences between steps.
func TestRaisedPriorities(t *testing.T) {
	w, err := workflow.Parse("t.yaml",
		[]byte("workflow: w\nsteps:\n  a: {writes: a, priority: 2147483640, command: x}\n  b: {writes: b, "+
			"priority: -5, command: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if same, err := w.Raised(0); same != w || err != nil {
		t.Error("raised by nothing it is another workflow", err)
	}
	for by, fits := range map[int]bool{7: true, 8: false, math.MinInt32 + 5: true, math.MinInt32 + 4: false} {
		raised, err := w.Raised(by)
		if fits != (err == nil) || fits && raised.Digest() == w.Digest() {
			t.Fatalf("raised by %d: %v", by, err)
		}
		if !fits {
			continue
		}
		x := newWorldOf(t, raised, nil)
		x.step(Tick{})
		if a, b := x.jobs["a"].Job.Priority, x.jobs["b"].Job.Priority; a != 2147483640+by || b != by-5 {
			t.Errorf("raised by %d: %d and %d", by, a, b)
		}
	}
}

// What a workflow was made of is kept; the values that it has already need no second reading.
func TestSourceOfWorkflows(t *testing.T) {
	text := []byte("workflow: w\nparameters: {p: 1}\nsteps: {a: {writes: a, command: 'echo $p'}, " +
		"b: {writes: b, command: x}}\n")
	w, err := workflow.Parse("t.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if got, scales := w.Source(); !bytes.Equal(got, text) || scales != nil {
		t.Errorf("its source is %q, %v", got, scales)
	}
	set := map[string]string{"p": "2"}
	bound, err := w.With(set)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := bound.With(set); again != bound || err != nil {
		t.Error("with the values that it has it is another workflow", err)
	}
	part, err := bound.Until("a")
	if err != nil || part.Target() != "a" || w.Target() != "" || part.Digest() == bound.Digest() ||
		!slices.Equal(part.StepNames(), []string{"a"}) || part.Set()["p"] != "2" {
		t.Errorf("until a: %v, %q, %q", err, part.Target(), part.StepNames())
	}
	if _, err := w.Until("c"); err == nil || !strings.Contains(err.Error(), "the steps are a, b") {
		t.Error("until a step that is not there:", err)
	}

	trace := workflow.NewRecorded(workflow.Recorded{
		File: "t.json", Name: "t", Text: []byte("{}"), Scales: workflow.Scales{TimeScale: 2},
	})
	if got, scales := trace.Source(); string(got) != "{}" || scales == nil || scales.TimeScale != 2 {
		t.Errorf("the source of a trace is %q, %v", got, scales)
	}
	if same, err := trace.With(nil); same != trace || err != nil {
		t.Error("a trace without parameters:", err)
	}
	if _, err := trace.With(set); err == nil {
		t.Error("a trace took parameters")
	}
	if _, err := trace.Until("a"); err == nil {
		t.Error("a part of a trace was taken")
	}
}
