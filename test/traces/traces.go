// Package traces finds the WfFormat traces that tests read: one of the project's own,
// which is always there, and those of real runs, which are not part of the project.
package traces

import (
	"os"
	"path/filepath"
	"testing"
)

// real is where the traces of real runs are, seen from the root of the project.
const real = "../shared/data/wfformat"

// Files returns the absolute paths of all traces that are there. With FAIRWAY_SOAK
// a test without those of real runs fails.
func Files(t testing.TB) []string {
	t.Helper()
	root := rootOf(t)
	own := in(t, filepath.Join(root, "test/traces/testdata"))
	found := in(t, filepath.Join(root, real))
	switch {
	case len(own) == 0:
		t.Fatal("the project's own trace is missing")
	case len(found) == 0 && os.Getenv("FAIRWAY_SOAK") != "":
		t.Fatalf("no traces of real runs in %s: get them from github.com/wfcommons/WfInstances", real)
	case len(found) == 0:
		t.Logf("only the project's own trace: no real ones in %s", real)
	}
	return append(own, found...)
}

func in(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rootOf is the folder of go.mod, above the package under test.
func rootOf(t testing.TB) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			t.Fatal("no go.mod above this test")
		}
		at = filepath.Dir(at)
	}
}
