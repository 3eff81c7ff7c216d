package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/pilot/process"
	"fairway/internal/wire"
)

// oldFile makes a file that was there long before the attempt.
func oldFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, before, before); err != nil {
		t.Fatal(err)
	}
	return path
}

// watching starts a pilot that watches each attempt.
func watching(t *testing.T, mode WatchMode) *taskQueue {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.WatchInputs, cfg.Workflow = mode, q.folder
	cfg.Cache = CacheConfig{Mode: CacheHost, Dir: q.folder + "/cache"}
	q.start(cfg)
	return q
}

func TestUndeclaredFilesAreNoted(t *testing.T) {
	q := watching(t, WatchAll)
	data := oldFile(t, filepath.Join(q.folder, "data", "x.fq"), "reads")
	result := oldFile(t, filepath.Join(q.folder, "results", "sub", "foo"), "result")
	input := oldFile(t, filepath.Join(q.folder, "given"), "four")
	for command, want := range map[string]string{
		"cat " + data:                             "it opened " + data + ", which the step does not declare: make it an input of the workflow and name it in reads",
		"sh -c 'cat <" + data + "' & wait":        "make it an input",
		"cd " + filepath.Dir(data) + "; cat x.fq": "it opened " + data,
		"cat ../../../results/sub/foo":            "it opened " + result + ", which the step does not declare: name sub/foo in reads",
		"cat " + data + "; exit 3":                "it opened " + data,
		"cat x; cat " + input:                     "",
		"cat " + ownProgram + " >/dev/null":       "",
		"echo made >made; cat made; rm made; tmp=$(mktemp); echo made >$tmp; cat $tmp; rm $tmp":               "",
		"cat /etc/passwd /proc/self/status >/dev/null; ls -R /usr/share/doc >/dev/null; printf x >>" + result: "",
		"test -e " + data + "; cat " + data + ".missing || true":                                              "",
	} {
		a := shell(command, reads("x", 1, 4, "file:"+input))
		got := strings.Join(q.run("p1", a).GetNotes(), "; ")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: notes %q, want %q", command, got, want)
		}
	}
}

func TestNotesOfOpenedFilesAreBounded(t *testing.T) {
	q := watching(t, WatchAll)
	for i := range maxOpenNotes + 3 {
		oldFile(t, fmt.Sprintf("%s/data/%d", q.folder, i), "x")
	}
	r := q.run("p1", shell("cat "+q.folder+"/data/*"))
	if notes := r.GetNotes(); len(notes) != maxOpenNotes+1 || !strings.Contains(notes[maxOpenNotes], "3 more files") {
		t.Errorf("%q", r.GetNotes())
	}
}

func TestFirstAttemptOfAStepIsWatched(t *testing.T) {
	if !process.Unrestricted() {
		t.Skip("files that jobs open are watched only if somebody asks for it")
	}
	q := watching(t, "")
	data := oldFile(t, filepath.Join(q.folder, "data", "x.fq"), "reads")
	for i, want := range []int{1, 0} {
		if r := q.run("p1", shell("cat "+data)); len(r.GetNotes()) != want {
			t.Errorf("attempt %d: %q", i+1, r.GetNotes())
		}
	}
}

func TestNothingIsWatchedUnlessWanted(t *testing.T) {
	q := watching(t, WatchNone)
	data := oldFile(t, filepath.Join(q.folder, "data", "x.fq"), "reads")
	r := q.run("p1", shell("cat "+data))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if len(r.GetNotes()) != 0 {
		t.Errorf("%q", r.GetNotes())
	}
}

// Files that go with the sandbox, since no output names them, are told of once a step.
func TestFilesThatAreNotKeptAreNoted(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	input := writeFile(t, "four")
	for command, want := range map[string]string{
		": >out; : >out.bai":                        "it made out.bai, which the step does not declare: it is not kept",
		": >out; mkdir a; : >a/b; : >c; : >d; : >e": "it made a/b, c, d and 1 more, which the step does not declare: they are",
		": >out; : >more.txt; : >.hidden; mkdir __pycache__ empty; : >__pycache__/x": "",
		": >out; mkdir folder; : >folder/x":                                          "",
		": >out; mkdir ../elsewhere; : >../elsewhere/x; rm -r ../elsewhere":          "",
	} {
		for _, want := range []string{want, ""} {
			a := shell(command+"; mkdir -p folder", reads("x", 1, 4, input), writes("out", "folder/", "more*"))
			a.Step = command
			notes := strings.Join(q.run("p1", a).GetNotes(), "; ")
			if (notes == "") != (want == "") || !strings.Contains(notes, want) {
				t.Errorf("%s: notes %q, want %q", command, notes, want)
			}
		}
	}
	if notes := q.run("p1", shell(": >result.txt")).GetNotes(); len(notes) != 1 {
		t.Errorf("a job of no outputs: %q", notes)
	}
}
