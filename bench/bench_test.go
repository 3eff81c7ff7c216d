// Package bench tests the benchmarks that stand below it.
package bench

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Those that need nothing but this machine, with flags that make them short. The others want a batch
// system, other engines, namespaces or minutes.
var shortly = []string{
	"dispatch -only lookup", "files -small 2", "fleet -only 10", "lock -only uncontended", "noop",
	"reaction -n 0 -only gosched -rounds 1", "restart", "service -only jobs -stores sqlite -runs 1",
	"waiters -n 1 -rounds 1",
}

// Each program works, and prints rows.
func TestBenchmarksWork(t *testing.T) {
	folder := t.TempDir()
	build := []string{"build", "-ldflags=-s -w", "-o", folder}
	for _, line := range shortly {
		build = append(build, "./"+strings.Fields(line)[0])
	}
	if out, err := exec.CommandContext(t.Context(), "go", build...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range shortly {
		name, _, _ := strings.Cut(line, " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := append(strings.Fields(line)[1:], "-quick", "-json")
			run := exec.CommandContext(t.Context(), filepath.Join(folder, name), flags...)
			var said strings.Builder
			run.Stderr = &said
			out, err := run.Output()
			var found struct{ Rows []map[string]any }
			if err != nil || json.Unmarshal(out, &found) != nil || len(found.Rows) == 0 {
				t.Errorf("%v, %d rows\n%s%s", err, len(found.Rows), out, said.String())
			}
		})
	}
}
