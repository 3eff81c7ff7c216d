package wfformat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
	"fairway/test/traces"
)

func readTrace(t testing.TB, file string, o workflow.Scales) *workflow.Workflow {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Parse(filepath.Base(file), data, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// replay is what a flow makes of a recorded run.
type replay struct {
	flow      *flow.Flow
	submitted []string
	jobs      map[string]workflow.NewJob
	finished  bool
	notes     []string
}

func (r *replay) step(t *testing.T, in flow.Input) {
	t.Helper()
	effects, err := r.flow.Step(time.Unix(1_700_000_000, 0), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range effects.Submit {
		r.submitted = append(r.submitted, j.Job.Name)
		r.jobs[j.Job.Name] = j
	}
	r.finished, r.notes = effects.Finished, append(r.notes, effects.Notes...)
}

// run feeds the outside files of a recorded run: then all of its jobs are submitted.
func run(t *testing.T, w *workflow.Workflow) *replay {
	t.Helper()
	f, err := flow.New(w)
	if err != nil {
		t.Fatal(err)
	}
	r := &replay{flow: f, jobs: map[string]workflow.NewJob{}}
	var files []flow.InputFile
	for _, s := range w.Inputs[0].Sizes {
		files = append(files, flow.InputFile{
			ExistingFile: taskqueue.ExistingFile{LFN: s.LFN, PFN: s.LFN, Size: s.Size, Identity: "1"},
		})
	}
	r.step(t, flow.Arrived{Input: workflow.RecordedInput, Files: files})
	if len(r.submitted) != 0 {
		t.Errorf("submitted %d jobs before all outside files were there", len(r.submitted))
	}
	r.step(t, flow.Closed{Input: workflow.RecordedInput})
	if !r.finished || len(r.notes) > 0 {
		t.Errorf("finished %v, notes %q", r.finished, r.notes)
	}
	return r
}

func (r *replay) wantSubmitted(t *testing.T, names ...string) {
	t.Helper()
	if !slices.Equal(r.submitted, names) {
		t.Errorf("submitted %q, want %q", r.submitted, names)
	}
}

func TestRealTraces(t *testing.T) {
	for _, file := range traces.Files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			w := readTrace(t, file, workflow.Scales{TimeScale: 0.001, SizeScale: 0.5})
			x := run(t, w)
			data, _ := os.ReadFile(file)
			record, err := decodeTrace(data)
			if err != nil {
				t.Fatal(err)
			}
			rank := map[string]int{}
			for i, name := range x.submitted {
				rank[name] = i
			}
			for _, task := range record.Workflow.Specification.Tasks {
				if _, ok := rank[task.ID]; !ok {
					t.Fatalf("task %s has no job", task.ID)
				}
				for _, parent := range task.Parents {
					if rank[parent] > rank[task.ID] {
						t.Errorf("parent %s comes after %s", parent, task.ID)
					}
					if !dependsOn(x.jobs[task.ID], x.jobs[parent]) {
						t.Errorf("%s does not wait for %s", task.ID, parent)
					}
				}
			}
			if len(rank) != len(record.Workflow.Specification.Tasks) {
				t.Errorf("%d jobs for %d tasks", len(rank), len(record.Workflow.Specification.Tasks))
			}
		})
	}
}

func dependsOn(child, parent workflow.NewJob) bool {
	return slices.ContainsFunc(child.Job.Reads, func(lfn string) bool {
		return slices.ContainsFunc(parent.Command.Replay.Writes, func(w workflow.SizedFile) bool { return w.LFN == lfn })
	})
}

// A run of a workflow without inputs can be exported, and so replayed: nothing has to come from
// outside.
func TestTraceWithoutFilesFromOutside(t *testing.T) {
	text := `{"name": "alone", "schemaVersion": "1.5", "workflow": {
		"specification": {"tasks": [{"name": "a", "id": "a", "parents": [], "children": [], "inputFiles": [],
			"outputFiles": ["o"]}], "files": [{"id": "o", "sizeInBytes": 3}]},
		"execution": {"makespanInSeconds": 1, "executedAt": "2026-01-01T00:00:00Z", "tasks": [{"id": "a", "runtimeInSeconds": 1}]}}}`
	w, err := Parse("alone.json", []byte(text), workflow.Scales{TimeScale: 1, SizeScale: 1})
	if err != nil {
		t.Fatal(err)
	}
	run(t, w).wantSubmitted(t, "a")
}

const smallTrace = `{"name": "small", "schemaVersion": "1.5", "workflow": {
 "specification": {
  "tasks": [
   {"name": "end_ID02", "id": "end", "parents": ["mid"], "children": [], "inputFiles": ["/abs/../x.txt", "it"],
	"outputFiles": ["it"]},
   {"name": "mid_ID01", "id": "mid", "parents": [], "children": [], "inputFiles": ["it"], "outputFiles": ["it",
	"/abs"]},
   {"name": "begin", "id": "a/b", "parents": [], "children": ["mid"]}
  ],
  "files": [{"id": "it", "sizeInBytes": 10}, {"id": "/abs/../x.txt", "sizeInBytes": 7}, {"id": "/abs",
	"sizeInBytes": 3}]},
 "execution": {"makespanInSeconds": 3, "executedAt": "x", "tasks": [{"id": "mid", "runtimeInSeconds": 1.5, "command": {"program": "prog"}}]}}}`

func TestTraceWithoutFilesBetween(t *testing.T) {
	w, err := Parse("small.json", []byte(smallTrace), workflow.Scales{TimeScale: 2, SizeScale: 0})
	if err != nil {
		t.Fatal(err)
	}
	x := run(t, w)
	x.wantSubmitted(t, "a/b", "mid", "end")
	if got := x.jobs["mid"].Job.Reads; !slices.Equal(got, []string{"it", "_after/a_b"}) {
		t.Errorf("mid reads %v", got)
	}
	if got := x.jobs["end"].Job.Reads; !slices.Equal(got, []string{"abs~2/__/x.txt", "it~2"}) &&
		!slices.Equal(got, []string{"abs/__/x.txt", "it~2"}) {
		t.Errorf("end reads %v", got)
	}
	if r := x.jobs["mid"].Command.Replay; r.Compute != 3*time.Second || r.Program != "prog" || r.Writes[0].Size != 0 {
		t.Errorf("mid is %+v", r)
	}
	if got := w.StepNames(); !slices.Equal(got, []string{"begin", "mid", "end"}) {
		t.Errorf("steps %v", got)
	}
	for _, j := range x.jobs {
		for _, o := range j.Job.Writes {
			if why := logical.WhyNot(o.LFN); why != "" {
				t.Errorf("name %q %s", o.LFN, why)
			}
		}
	}
}

func TestTraceProblems(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{\n\"name\": 3}", "line 2: this is no WfFormat"},
		{`{"schemaVersion": "1.4"}`, `WfFormat "1.4"; 1.5 and 1.6`},
		{`{"schemaVersion": "1.6"}`, "no tasks"},
		{strings.Replace(smallTrace, `"parents": ["mid"]`, `"parents": ["mit"]`, 1), `"end" has the parent "mit", which does not exist`},
		{strings.Replace(smallTrace, `"children": []`, `"children": ["mid"]`, 1), "ancestors"},
	} {
		if _, err := Parse("t.json", []byte(c.text), workflow.Scales{}); err == nil || !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := Parse("t.json", []byte(smallTrace), workflow.Scales{TimeScale: -1}); err == nil {
		t.Error("a negative scale passed")
	}
}

func TestExportIsReread(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 999_999_999, time.FixedZone("x", 3600))
	done := Run{
		Name: "r", Version: "0.1", Created: start, Start: start, End: start.Add(time.Minute),
		Machines: []RunMachine{{Name: "node", Cores: 2, Memory: 5}},
		Tasks: []RunTask{
			{Name: "a", Start: start, End: start.Add(1_500_001 * time.Nanosecond), Writes: []RunFile{{"calib", 1, 3}, {"x", 0,
				4}}, Program: "sh", CPU: time.Millisecond, Machine: "node"},
			{Name: "b", Start: start.Add(1_500_001 * time.Nanosecond), End: start.Add(2 * time.Second),
				Reads: []RunFile{{"calib", 1, 3}, {"ext", 0, 9}}, Writes: []RunFile{{"calib", 2, 5}}},
			{Name: "c", Start: start.Add(3 * time.Second), End: start.Add(4 * time.Second), Reads: []RunFile{{"calib", 2, 5},
				{"x", 0, 4}}},
		},
	}
	for _, version := range []string{"1.5", "1.6"} {
		var b bytes.Buffer
		if err := Export(&b, done, version); err != nil {
			t.Fatal(err)
		}
		w, err := Parse("r.json", b.Bytes(), workflow.Scales{TimeScale: 1, SizeScale: 1})
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		x := run(t, w)
		x.wantSubmitted(t, "a", "b", "c")
		if !dependsOn(x.jobs["c"], x.jobs["a"]) || !dependsOn(x.jobs["c"], x.jobs["b"]) ||
			!dependsOn(x.jobs["b"], x.jobs["a"]) {
			t.Error("dependencies were lost")
		}
		if got := x.jobs["a"].Command.Replay.Compute; got != 1501*time.Microsecond && got != 1500*time.Microsecond {
			t.Errorf("a computes %v", got)
		}
		checkOrder(t, b.Bytes())
		if !json.Valid(b.Bytes()) || !strings.Contains(b.String(), `"schemaVersion": "`+version+`"`) {
			t.Error("not the version asked for")
		}
	}
	if err := Export(&bytes.Buffer{}, done, "1.4"); err == nil {
		t.Error("version 1.4 passed")
	}
}

// checkOrder checks that no child began before its parents ended.
func checkOrder(t *testing.T, data []byte) {
	t.Helper()
	var r exportRecord
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	begin, end := map[string]time.Time{}, map[string]time.Time{}
	for _, task := range r.Workflow.Execution.Tasks {
		at, err := time.Parse(time.RFC3339Nano, task.ExecutedAt)
		if err != nil {
			t.Fatal(err)
		}
		took, err := time.ParseDuration(task.Runtime.String() + "s")
		if err != nil {
			t.Fatal(err)
		}
		begin[task.ID], end[task.ID] = at, at.Add(took)
	}
	for _, task := range r.Workflow.Specification.Tasks {
		for _, parent := range task.Parents {
			if begin[task.ID].Before(end[parent]) {
				t.Errorf("%s began before %s ended", task.ID, parent)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(smallTrace))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := Parse("t.json", data, workflow.Scales{TimeScale: 1, SizeScale: 1})
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range w.Inputs[0].Sizes {
			seen[s.LFN] = true
		}
		x := run(t, w)
		for _, name := range x.submitted {
			j := x.jobs[name]
			for _, r := range j.Job.Reads {
				if !seen[r] {
					t.Fatalf("%s reads %q before it is made", j.Job.Name, r)
				}
			}
			for _, o := range j.Job.Writes {
				if seen[o.LFN] || logical.WhyNot(o.LFN) != "" {
					t.Fatalf("%s writes %q", j.Job.Name, o.LFN)
				}
				seen[o.LFN] = true
			}
		}
	})
}
