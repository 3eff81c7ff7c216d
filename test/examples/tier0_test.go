package examples

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"fairway/test/files"
	"fairway/test/program"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

const tier0 = "../../examples/tier0"

// TestTier0 holds the README of the example to what it says: the results are the
// same bytes on any number of pilots, and after any crash.
func TestTier0(t *testing.T) {
	data := t.TempDir()
	if out, err := exec.Command(tier0+"/make-events", "3", "300", data).CombinedOutput(); err != nil {
		t.Fatalf("make-events: %v\n%s", err, out)
	}
	want := newTier0(t, data).finish("1")
	if names := slices.Collect(maps.Keys(want)); !slices.Contains(names, "history.txt") || len(names) < 10 {
		t.Fatalf("results of tier0: %q", names)
	}
	for _, pilots := range []string{"2", "5"} {
		newTier0(t, data).mustGive(want, pilots)
	}
	for _, point := range []string{"store.commit.after:6:kill", "pilot.command.after:4:kill", "publish.linked:2:kill"} {
		w := newTier0(t, data)
		w.killAt(point)
		w.mustGive(want, "2")
	}
}

// workspace is a copy of the example, in which nothing was run yet.
type workspace struct {
	*testing.T
	folder, data string
}

func newTier0(t *testing.T, data string) *workspace {
	t.Helper()
	w := &workspace{t, t.TempDir(), data}
	text, err := os.ReadFile(tier0 + "/workflow.yaml")
	if err == nil {
		err = os.WriteFile(filepath.Join(w.folder, "workflow.yaml"), text, 0o600)
	}
	if err == nil {
		err = os.CopyFS(filepath.Join(w.folder, "programs"), os.DirFS(tier0+"/programs"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *workspace) command(pilots string) *exec.Cmd {
	return exec.Command(fairway, "-C", w.folder, "run", "--pilots", pilots, "--set", "data="+w.data, "--set", "events=100")
}

// killAt runs the workflow and kills the first process that reaches a fault
// point, which one has to.
func (w *workspace) killAt(point string) {
	w.Helper()
	once := filepath.Join(w.TempDir(), "once")
	c := w.command("2")
	c.Env = append(os.Environ(), "FAIRWAY_FAULT="+point, "FAIRWAY_FAULT_ONCE="+once)
	out, _ := c.CombinedOutput() // which fails if it was the server
	if _, err := os.Stat(once); err != nil {
		w.Fatalf("nothing was killed at %s:\n%s", point, out)
	}
}

// finish runs the workflow to its end and returns the results by name.
func (w *workspace) finish(pilots string) map[string]string {
	w.Helper()
	if out, err := w.command(pilots).CombinedOutput(); err != nil {
		w.Fatalf("fairway run on %s pilots: %v\n%s", pilots, err, out)
	}
	return files.Below(w, filepath.Join(w.folder, "results"))
}

func (w *workspace) mustGive(want map[string]string, pilots string) {
	w.Helper()
	if got := w.finish(pilots); !maps.Equal(got, want) {
		w.Errorf("on %s pilots the results differ:\n got %v\nwant %v", pilots, got, want)
	}
}
