// Package modelcheck has SPIN, a checker of models (Debian's package spin), walk a model in tests.
package modelcheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Check walks all states of a model in Promela, and returns what SPIN says and whether it found
// something wrong. The defines are those of its preprocessor ("-DTASKS=2"); where they ask the model
// for a trace, it includes that as trace.pml. With mayStandStill a state in which nobody can go on is
// no error by itself. It skips the test where there is no SPIN. Only the test's goroutine may call it.
func Check(t testing.TB, model, trace string, mayStandStill bool, defines ...string) (said string, refused bool) {
	t.Helper()
	if _, err := exec.LookPath("spin"); err != nil {
		t.Skip("no spin here: apt-get install spin")
	}
	folder := t.TempDir()
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"model.pml": text, "trace.pml": []byte(trace)} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	walk := []string{"./pan", "-m300000"} // steps of the longest way
	if mayStandStill {
		walk = append(walk, "-E")
	}
	for _, command := range [][]string{
		append(append([]string{"spin", "-a"}, defines...), "model.pml"),
		{"gcc", "-O0", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"},
		walk,
	} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if said = string(out); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	if strings.Contains(said, "max search depth too small") {
		t.Fatal(said)
	}
	return said, !strings.Contains(said, "errors: 0")
}
