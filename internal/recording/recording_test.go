package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

const small = `
workflow: small
inputs:
  texts: {files: "in/{name}.txt", as: "in/{name}.txt"}
steps:
  copy:
    each: "in/{name}.txt"
    writes: "out/{name}.txt"
    command: cp "$in" "$out"
`

// perform writes a recording of a server that gets a file and ends.
func perform(t *testing.T, path string, limit int64) *Writer {
	t.Helper()
	w, err := workflow.Parse("workflow.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	writer, err := Append(path, limit, Beginning{Workflow: w})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := flow.New(w)
	if err != nil {
		t.Fatal(err)
	}
	jobs, effects, err := dispatch.Load(taskqueue.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	writer.Load(nil, &effects)
	at := time.Date(2026, time.November, 21, 12, 0, 0, 0, time.FixedZone("", 3600))
	dispatched := func(in taskqueue.Input) {
		at = at.Add(time.Second)
		effects, err := jobs.Step(at, in)
		writer.Dispatch(at, in, &effects, err)
	}
	flowed := func(in flow.Input) flow.Effects {
		at = at.Add(time.Second)
		effects, err := steps.Step(at, in)
		writer.Flow(at, in, &effects, err)
		return effects
	}
	arrived := flowed(flow.Arrived{Input: "texts", Files: []flow.InputFile{
		{ExistingFile: taskqueue.ExistingFile{LFN: "in/a.txt", PFN: "/ä", Size: 3, Identity: "1"}},
	}})
	dispatched(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, Name: "small"}})
	dispatched(taskqueue.AddFiles{Run: 1, Files: arrived.AddFiles})
	dispatched(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{arrived.Submit[0].Job}})
	dispatched(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{arrived.Submit[0].Job}}) // refused
	dispatched(taskqueue.Sync{
		Pilot: "p", Seq: 1, Full: true, Hello: &taskqueue.PilotInfo{Host: "h", Has: taskqueue.Resources{MilliCPUs: 1000}},
	})
	flowed(flow.Closed{Input: "texts"})
	return writer
}

func newRecording(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	if err := perform(t, path, DefaultLimit).Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReplayDecidesTheSame(t *testing.T) {
	replayed, err := Replay(bytes.NewReader(contents(t, newRecording(t))))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Replayed{Servers: 1, Loads: 1, Dispatch: 5, Flow: 2}); replayed != want {
		t.Errorf("replayed %+v, not %+v", replayed, want)
	}
}

// A server that was killed leaves a line without its end. The next begins
// where the last whole line ended.
func TestSecondServerGoesOn(t *testing.T) {
	path := newRecording(t)
	text := contents(t, path)
	if err := os.WriteFile(path, text[:len(text)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := perform(t, path, DefaultLimit).Close(); err != nil {
		t.Fatal(err)
	}
	replayed, err := Replay(bytes.NewReader(contents(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Replayed{Servers: 2, Loads: 2, Dispatch: 10, Flow: 3}); replayed != want {
		t.Errorf("replayed %+v, not %+v", replayed, want)
	}
}

func TestDifferenceNamesItsPlace(t *testing.T) {
	text := string(contents(t, newRecording(t)))
	for change, want := range map[string]string{
		`"Run":[{"Job":4294967297,|"Run":[{"Job":4294967298,`: "line 8: when dispatch was told Sync 1 of pilot p, the replay decides otherwise at effects.Replies[0].Answer.Run[0].Job\n  recorded: 4294967298\n  replayed: 4294967297",
		`"Final":["copy"]|"Final":[]`:                         `line 9: when flow was told Closed, the replay decides otherwise at effects.Final[0]`,
		`"refused":"|"refused":"not `:                         `line 7: when dispatch was told Submit, the replay decides otherwise`,
		`"key":"incarnation"|"key":"incarnations"`:            `line 2: when dispatch was loaded, the replay decides otherwise at effects.Persist[0].key`,
	} {
		from, to, _ := strings.Cut(change, "|")
		changed := strings.Replace(text, from, to, 1)
		if changed == text {
			t.Errorf("the recording has no %s", from)
			continue
		}
		_, err := Replay(strings.NewReader(changed))
		if _, differs := errors.AsType[*Difference](err); !differs || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v\nnot      %s", err, want)
		}
	}
}

func TestRecordingEndsAtItsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	if err := perform(t, path, 5000).Close(); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("error %v says nothing of the limit", err)
	}
	text := contents(t, path)
	if len(text) > 5000 {
		t.Errorf("%d bytes, beyond 5000", len(text))
	}
	replayed, err := Replay(bytes.NewReader(text))
	if err != nil || replayed.Cut == "" || replayed.Dispatch == 0 {
		t.Errorf("%+v, %v", replayed, err)
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thesis.txt")
	if err := os.WriteFile(path, []byte("chapter 1: it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Append(path, DefaultLimit, Beginning{}); err == nil || !strings.Contains(err.Error(), "is no recording") {
		t.Errorf("error %v", err)
	}
	if got := string(contents(t, path)); got != "chapter 1: it was" {
		t.Errorf("the file is now %q", got)
	}
	for _, text := range []string{"", "chapter 1\n", `{"at": "2026-11-21T12:00:00Z", "dispatch": "Tick", "input": {}}` + "\n"} {
		if _, err := Replay(strings.NewReader(text)); err == nil {
			t.Errorf("%q was replayed", text)
		}
	}
}

func TestContentKeepsAllBytes(t *testing.T) {
	for _, bytes := range []string{"", "text <&> \u2028", "\x00\xff\xfe", `{"v":1}`} {
		encoded, err := json.Marshal(content(bytes))
		if err != nil {
			t.Fatal(err)
		}
		var back content
		if err := json.Unmarshal(encoded, &back); err != nil || string(back) != bytes {
			t.Errorf("%q came back as %q: %v", bytes, back, err)
		}
	}
}

// Every input that dispatch and flow know can be recorded.
func TestAllInputsAreKnown(t *testing.T) {
	var known []string
	for _, in := range dispatchInputs {
		known = append(known, kindOf(in))
	}
	for _, in := range flowInputs {
		known = append(known, kindOf(in))
	}
	for _, file := range []string{"../taskqueue/input.go", "../flow/contract.go"} {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		inputs := 0
		for _, declaration := range syntax.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Name.Name != "isInput" {
				continue
			}
			inputs++
			if kind := f.Recv.List[0].Type.(*ast.Ident).Name; !slices.Contains(known, kind) {
				t.Errorf("%s: %s is not in the list", file, kind)
			}
		}
		if inputs == 0 {
			t.Errorf("%s has no inputs any more", file)
		}
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte(`{"begin":{"format":2,"file":"w","text":"workflow: x\n","config":{}}}` + "\n" + `{"load":true,"effects":{}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, failed := Replay(bytes.NewReader(text))
		second, again := Replay(bytes.NewReader(text))
		if first != second || fmt.Sprint(failed) != fmt.Sprint(again) {
			t.Errorf("the first time %+v, %v; the second time %+v, %v", first, failed, second, again)
		}
	})
}
