package workflow

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fairway/internal/yamlfile"
)

func TestCloseRules(t *testing.T) {
	for text, want := range map[string]CloseRule{
		"manual": {Manual: true}, "after 30s idle": {Idle: 30 * time.Second}, "file done.txt": {File: "done.txt"},
		"file all  done": {File: "all  done"},
	} {
		if got, err := parseCloseRule(text); err != nil || got != want {
			t.Errorf("%q: got %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "never", "after", "after x idle", "file", "file "} {
		if got, err := parseCloseRule(text); err == nil {
			t.Errorf("%q passed as %+v", text, got)
		}
	}
	w, err := Parse("t.yaml", []byte("workflow: w\ninputs: {a: {watch: 'a/{n}'}, b: {files: b}}\nsteps: {s: {each: "+
		"'{n}', reads: b, writes: 's/{n}', command: 'true'}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !w.Inputs[0].Close.Manual || w.Inputs[1].Close != (CloseRule{}) {
		t.Errorf("defaults are %+v and %+v", w.Inputs[0].Close, w.Inputs[1].Close)
	}
}

// Things of the wrong kind get an answer, wherever they stand.
func TestWrongKinds(t *testing.T) {
	for text, want := range map[string]string{
		"- a\n":                                                  "the workflow must be a mapping, not a list",
		"workflow: [w]\nsteps: {}\n":                             "workflow must be a text, not a list",
		"workflow: w\nsteps:\n":                                  "steps must be a mapping, not nothing",
		"workflow: w\nsteps: {}\n":                               "the workflow has no steps",
		"workflow: w\nsteps: {a: 3}\n":                           `step "a" must be a mapping, not "3"`,
		"workflow: w\nsteps: {[a]: {}}\n":                        "a key of steps must be a word, not a list",
		"workflow: w\nplacement: x\nsteps: {}\n":                 "write by-gain, by-bytes or by-files",
		"workflow: w w\nsteps: {}\n":                             `"w w" is no name for a workflow`,
		"workflow: w\nparameters: {a: [1]}\n":                    `the parameter "a" must be one value, not a list`,
		"workflow: w\nparameters: {1a: 1}\n":                     `"1a" is no name for a parameter`,
		"workflow: w\nparameters: {in: 1}\n":                     `the parameter "in" would hide`,
		"workflow: \ue000\n":                                     "private use area",
		"workflow: w\ninputs: {a: {url_list: u, match: '{x'}}\n": "that starts no placeholder",
		frame("  a: {each: [], writes: a, command: 'true'}\n"):   "each is an empty list",
		frame("  a: {each: 'raw/{n}', writes: {x: 'a/{n}', x: 'b/{n}'}, command: 'true'}\n"):                                   `writes has "x" twice`,
		frame("  a: {each: 'raw/{n}', reads: {x: 'raw/{n}'}, writes: {x: 'b/{n}'}, command: 'true'}\n"):                        `two files have the name "x"`,
		frame("  a: {each: 'raw/{n}', writes: ['b/{n}', 'b/{n}'], command: 'true'}\n"):                                         `"b/{n}" stands twice among what it writes`,
		frame("  a: {each: 'raw/{n}', writes: {n: 'b/{n}'}, command: 'true'}\n"):                                               `the file "n" has the name of a placeholder`,
		frame("  a: {each: 'raw/{n}', writes: 'b/{n}.?', command: 'true'}\n"):                                                  `has a '?'`,
		frame("  a: {each: 'raw/{n}', writes: 'b/{n}.{chunk}', command: 'true'}\n"):                                            `{chunk} in "b/{n}.{chunk}" has a value only in steps with split`,
		frame("  a: {each: 'raw/{n}', reads: 'raw/*', writes: 'b/{n}', command: 'true'}\n"):                                    `"raw/*" has a wildcard`,
		frame("  a: {each: 'raw/{n}', merge: 'raw/{n}', writes: b, command: 'true'}\n"):                                        "has each and merge",
		frame("  a: {each: 'raw/{n}', files: 2, writes: 'b/{n}', command: 'true'}\n"):                                          "files is for steps with merge",
		frame("  a: {each: 'raw/{n}', split: {records: 1, of: lines, count: wc}, writes: 'b/{n}.{chunk}', command: 'true'}\n"): "split has of and count",
		frame("  a: {each: 'raw/{n}', split: {records: 1}, writes: 'b/{n}.{chunk}', command: 'true'}\n"):                       "does not say what a record is",
		frame("  a: {each: 'raw/{chunk}', split: {records: 1, of: lines}, writes: 'b/{chunk}', command: 'true'}\n"):            "split gives {chunk} a value of its own",
	} {
		_, err := Parse("t.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// Anchors save writing the same twice.
func TestAliases(t *testing.T) {
	w, err := Parse("t.yaml", []byte(frame("  a: {each: 'raw/{n}', writes: 'a/{n}', needs: &n {cpus: 0.5, memory: "+
		"1GiB}, command: 'true'}\n  b: {each: 'a/{n}', writes: 'b/{n}', needs: *n, command: 'true'}\n")))
	if err != nil {
		t.Fatal(err)
	}
	if d := w.Demands(); d[1].Needs.MilliCPUs != 500 || d[1].Needs.Memory != 1<<30 || d[1].Step != "b" {
		t.Errorf("%+v", d)
	}
	if got := strings.Join(w.StepNames(), " "); got != "a b" {
		t.Errorf("steps %s", got)
	}
}

func TestTooManyProblemsAreCut(t *testing.T) {
	_, err := Parse("t.yaml",
		[]byte("workflow: w\n"+strings.Repeat("x: 1\n", 1)+"steps:\n"+strings.Repeat("  'a ': 1\n", 500)))
	if problems, ok := errors.AsType[yamlfile.Problems](err); !ok || len(problems) > yamlfile.MaxProblems {
		t.Errorf("%d problems", len(problems))
	}
}

// The text of a workflow is parsed once: other values and a target are bound to what was parsed.
func TestTextIsParsedOnce(t *testing.T) {
	text := "workflow: w\nparameters: {n: 1}\nsteps:\n  a: {writes: a, command: 'echo ${n}'}\n"
	parsed, err := Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := parsed.With(map[string]string{"n": "2"})
	if err != nil {
		t.Fatal(err)
	}
	until, err := bound.Until("a")
	if err != nil {
		t.Fatal(err)
	}
	if bound == parsed || bound.root != parsed.root || until.root != parsed.root {
		t.Error("the text was parsed again")
	}
}
