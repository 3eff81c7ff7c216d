package flow

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/yamlfile"
)

func TestParametersAreChecked(t *testing.T) {
	w, err := workflow.Parse("t.yaml",
		[]byte("workflow: w\nparameters: {n: null, m: 2}\nsteps:\n  a: {writes: 'x${n}', command: "+
			"'echo $n'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(w); err == nil || !strings.Contains(err.Error(), "--set n=VALUE") {
		t.Errorf("without value: %v", err)
	}
	if _, err := w.With(map[string]string{"n": "1", "mm": "3"}); err == nil || !strings.Contains(err.Error(), `did you mean "m"`) {
		t.Errorf("unknown: %v", err)
	}
	if w, err = w.With(map[string]string{"n": "7"}); err != nil {
		t.Fatal(err)
	}
	f, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := f.Step(time.Time{}, Tick{})
	if len(e.Submit) != 1 || e.Submit[0].Job.Writes[0].LFN != "x7" {
		t.Errorf("submitted %+v", e.Submit)
	}
	if env := e.Submit[0].Command.Environment; env["n"] != "7" || env["m"] != "" {
		t.Errorf("a command has the parameters that it names: %v", env)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(lambda))
	f.Add([]byte(calibrated))
	f.Add([]byte(sized))
	f.Add([]byte("workflow: w\nparameters: {p: 1}\ninputs:\n  raw: {files: 'raw/{n}.txt', as: 'raw/{n}'}\nsteps:\n" +
		"  a: &x {each: 'raw/{n}', split: {records: 2, of: lines}, writes: 'a/{n}.{chunk}', command: 'true'}\n  b: *x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := workflow.Parse("t.yaml", data)
		if err != nil {
			var problems yamlfile.Problems
			if !errors.As(err, &problems) || len(problems) == 0 || len(problems) > yamlfile.MaxProblems {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		set := map[string]string{}
		for _, p := range w.Parameters {
			set[p.Name] = "1"
		}
		if w, err = w.With(set); err != nil {
			return // another value for a parameter may be wrong
		}
		flow, err := New(w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := flow.Step(time.Time{}, Tick{}); err != nil {
			t.Fatal(err)
		}
		for _, in := range flow.Inputs() {
			if _, err := flow.Step(
				time.Time{}, Arrived{Input: in.Name, Files: filesOf("a", "b/c", fmt.Sprint(in.Line))},
			); err != nil && !errors.Is(err, ErrTwice) {
				t.Fatal(err)
			}
			if _, err := flow.Step(time.Time{}, Closed{Input: in.Name}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
