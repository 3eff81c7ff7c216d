package flow

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

func TestLoadRefusesAnotherWorkflow(t *testing.T) {
	x := newWorld(t, digestable, nil)
	x.arrive("raw", "raw/1")
	other, err := x.w.With(map[string]string{"used": "9"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(other, x.records); !errors.Is(err, ErrOtherWorkflow) {
		t.Errorf("other parameters: %v", err)
	}
	if f, err := Load(x.w, []taskqueue.Record{{Table: "job", Key: "1", Body: []byte("{")}}); err != nil || f == nil {
		t.Errorf("records of others: %v", err)
	}
	broken := append(slices.Clone(x.records), taskqueue.Record{Table: TableLog, Key: "f", Body: []byte("{")})
	if _, err := Load(x.w, broken); err == nil {
		t.Error("a broken record passed")
	}
	for body, want := range map[string]string{
		`{"kind":"heard","name":"raw"}`:         `replay the stored run: unknown entry "heard"`,
		`{"kind":"aged","name":"s","group":""}`: `replay the stored run: step "s" has no group ""`,
		`{"kind":"closed","name":"nobody"}`:     "replay the stored run: ",
	} {
		strange := append(slices.Clone(x.records), taskqueue.Record{Table: TableLog, Key: "f", Body: []byte(body)})
		if f, err := Load(x.w, strange); f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

func TestRecordsAreWrittenOnce(t *testing.T) {
	x := calibratedWorld(t)
	x.arrive("runs", "raw/1.raw", "raw/2.raw")
	x.reload()
	x.commit("repack/2")
	x.reload()
	x.commit("repack/1")
	seen := map[string]bool{}
	for _, r := range x.records {
		if seen[r.Table+r.Key] || r.Body == nil {
			t.Errorf("%s %s is written twice, or removed", r.Table, r.Key)
		}
		seen[r.Table+r.Key] = true
	}
	before := len(x.records)
	x.commit("count/1")
	if len(x.records) != before {
		t.Error("a commit that decides nothing is recorded")
	}
}

func TestArrivalsAreChecked(t *testing.T) {
	x := calibratedWorld(t)
	x.arrive("runs", "raw/1.raw", "raw/1.raw")
	x.arrive("runs", "raw/1.raw")
	x.wantSubmitted("repack/1", "count/1")
	changed := filesOf("raw/2.raw", "raw/1.raw")
	changed[1].Identity = "2"
	for _, c := range []struct {
		in   Input
		want error
	}{
		{Arrived{"runs", changed}, ErrInputChanged},
		{Arrived{"start", filesOf("late")}, ErrInputClosed},
		{Arrived{"runs", filesOf("calib.txt")}, ErrTwice},
		{Arrived{"nobody", nil}, ErrUnknownInput},
		{Closed{"nobody"}, ErrUnknownInput},
	} {
		if _, err := x.flow.Step(x.now, c.in); !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v, want %v", c.in, err, c.want)
		}
	}
	x.arrive("runs", "raw/2.raw")
	x.wantSubmitted("repack/2", "count/2")
	x.arrive("start", "calib.txt") // once more, after it was closed: the caller enumerates again
	x.wantSubmitted()
	if _, err := x.flow.Step(x.now, Arrived{"runs", filesOf("../raw/3.raw")}); err == nil ||
		!strings.Contains(err.Error(), `".."`) {
		t.Errorf("an illegal name: %v", err)
	}
}

// A refused input changes nothing, also as the first.
func TestRefusedFirstInput(t *testing.T) {
	x := newWorld(t, "workflow: w\nsteps: {a: {writes: a, command: 'true'}}\n", nil)
	if _, err := x.flow.Step(x.now, Closed{"nobody"}); !errors.Is(err, ErrUnknownInput) {
		t.Errorf("got %v", err)
	}
	x.step(Tick{})
	x.wantSubmitted("a")
	x.reload()
	x.step(Tick{})
	x.wantSubmitted()
}

// A job that failed holds back what depends on the names it would choose, and
// nothing else; when it is retried, all goes on.
func TestFailedJobs(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs: {raw: {files: "raw/{n}", as: "raw/{n}"}}
steps:
  a: {each: "raw/{n}", writes: "a/{n}.{m}", command: "true"}
  m: {merge: "a/{n}.{m}", writes: m, command: "true"}
  b: {each: "raw/{n}", writes: "b/{n}", command: "true"}
  n: {merge: "b/{n}", writes: n, command: "true"}
`, nil)
	x.produce = func(j workflow.NewJob, pattern string) []string {
		return []string{strings.Replace(pattern, "*", "x", 1)}
	}
	x.arrive("raw", "raw/1", "raw/2")
	x.close("raw")
	x.wantSubmitted("a/1", "b/1", "a/2", "b/2", "n")
	x.commit("a/1")
	x.step(Happened{taskqueue.Event{Kind: taskqueue.JobFailed, Name: "a/2"}})
	x.step(Happened{taskqueue.Event{Kind: taskqueue.JobFailed, Name: "b/2"}})
	x.wantSubmitted()
	if slices.Contains(x.final, "m") || !slices.Contains(x.final, "n") || x.finished {
		t.Errorf("final are %v", x.final)
	}
	x.commit("a/2")
	x.wantSubmitted("m")
	if !x.finished {
		t.Error("not finished")
	}
	// Outputs that were lost from all caches are made again: nothing new.
	x.step(Happened{x.event(x.jobs["a/2"])})
	x.wantSubmitted()
}

func TestChosenNamesThatDoNotFitAreReported(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs: {raw: {files: "raw/{n}", as: "raw/{n}"}}
steps:
  a: {each: "raw/{n}", writes: "a/{n}/{m}.{m}", command: "true"}
  b: {each: "a/{n}/{m}.{m}", writes: "b/{n}.{m}", command: "true"}
`, nil)
	x.produce = func(workflow.NewJob, string) []string { return []string{"a/1/x.x", "a/1/x.y"} }
	x.arrive("raw", "raw/1")
	x.close("raw")
	x.commit("a/1")
	x.wantSubmitted("a/1", "b/1/x")
	if len(x.notes) != 1 || !strings.Contains(x.notes[0], "job a/1 wrote a/1/x.y, which does not fit a/{n}/{m}.{m}") {
		t.Errorf("notes %q", x.notes)
	}
}

func TestTooManyChunksAreRefused(t *testing.T) {
	x := newWorld(t, `
workflow: w
inputs: {raw: {files: "raw/{n}", as: "raw/{n}"}}
steps:
  a: {each: "raw/{n}", split: {records: 1, of: bytes=1}, writes: "a/{n}.{chunk}", command: "true"}
`, nil)
	x.size = func(string) int64 { return maxChunks + 1 }
	x.arrive("raw", "raw/1")
	x.close("raw")
	if x.finished || len(x.submitted) > 0 || len(x.notes) == 0 || !strings.Contains(x.notes[0], "the limit is 1000000") {
		t.Errorf("notes %q", x.notes)
	}
}

// Two jobs whose values give one name, or one pattern, are told alike whichever
// comes first, and the run does not finish.
func TestTwoWritersOfOneNameAreRefused(t *testing.T) {
	for writes, want := range map[string]string{
		"out/{n}.{m}":     "out/1.2.3 is an output of both job a/1.2/3 and job a/1/2.3: let the names differ, as by a folder for each placeholder",
		"out/{n}.{m}.{x}": "out/1.2.3.* is an output of both job a/1.2/3 and job a/1/2.3: ",
	} {
		for _, order := range [][]string{{"1", "1.2"}, {"1.2", "1"}} {
			x := newWorld(t, `
workflow: w
inputs: {left: {files: "left/{n}", as: "left/{n}"}, right: {files: "right/{n}/{m}", as: "right/{n}/{m}"}}
steps:
  a: {each: ["left/{n}", "right/{n}/{m}"], writes: "`+writes+`", command: "true"}
`, nil)
			x.arrive("right", "right/1/2.3", "right/1.2/3")
			x.close("right")
			x.arrive("left", "left/"+order[0], "left/"+order[1])
			x.close("left")
			x.commitAll(first)
			held := x.flow.Held(1)
			if x.finished || len(held) != 1 || !strings.HasPrefix(held[0].Reason, want) {
				t.Errorf("%s: finished %v, held %v", writes, x.finished, held)
			}
		}
	}
}
