package pilot

import (
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/wire"
)

// A name that is not UTF-8 in what a pilot tells would have every Sync refused.
func TestNameInAnotherEncodingReachesTheTaskQueue(t *testing.T) {
	q := watching(t, WatchAll)
	data := oldFile(t, filepath.Join(q.folder, "caf\xe9.csv"), "text")
	want := filepath.Join(q.folder, `caf\xe9.csv`)
	r := q.run("p1", shell("cat "+filepath.Dir(data)+"/caf*.csv"))
	if notes := strings.Join(r.GetNotes(), "; "); !strings.Contains(notes, "it opened "+want) {
		t.Error(notes)
	}
	expect(t, q.run("p1", shell(`printf 'caf\351: No such file or directory' >&2; exit 3`)), wire.Outcome_OUTCOME_EXITED, "")
	expect(t, q.run("p1", shell(`: > "$(printf 'p\351')"`, writes("*"))), wire.Outcome_OUTCOME_STAGE_OUT_FAILED, `"p\xe9" is not UTF-8`)
	expect(t, q.run("p1", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

// A line break in a name would make two of it in FAIRWAY_INPUTS_FILE, and in all that tells
// of files one a line. Other control characters are in names as they are.
func TestNameWithALineBreakIsNoOutput(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	r := q.run("p1", shell(`mkdir -p o; : > "$(printf 'o/a\nb')"`, writes("o/*")))
	expect(t, r, wire.Outcome_OUTCOME_STAGE_OUT_FAILED, `"o/a\nb" contains a line break`)
	r = q.run("p1", shell(`mkdir -p o; : > "$(printf 'o/a\tb\033[2J\177\302\205')"`, writes("o/*")))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if got := r.GetOutputs()[0].GetLfn(); got != "o/a\tb\x1b[2J\x7f\u0085" {
		t.Errorf("%q", got)
	}
}

func TestConfigOfAFolderInAnotherEncodingIsRefused(t *testing.T) {
	c := Config{SandboxDir: "/home/caf\xe9/.fairway/sandbox"}
	if _, err := c.Encode(); err == nil || !strings.Contains(err.Error(), `caf\xe9`) {
		t.Error(err)
	}
}
