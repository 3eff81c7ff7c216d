package rules

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// requirement is a module in go.mod, as `go mod edit -json` tells of it.
type requirement struct {
	Path     string
	Indirect bool
}

func requirements(t *testing.T) []requirement {
	t.Helper()
	command := exec.Command("go", "mod", "edit", "-json")
	command.Dir = root
	text, err := command.Output()
	if err != nil {
		t.Fatal("read go.mod: ", err)
	}
	var module struct{ Require []requirement }
	if err := json.Unmarshal(text, &module); err != nil {
		t.Fatal("read go.mod: ", err)
	}
	return module.Require
}

// What the code imports stands in go.mod as a direct requirement, and nothing
// else does. `go mod tidy` sees to that, but it needs the network, and also
// what only tests of other modules import; this needs neither.
func TestRequirements(t *testing.T) {
	files, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	required := requirements(t)
	imported := map[string]bool{}
	for _, s := range files {
		for _, spec := range s.syntax.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			imported[moduleOf(path, required)] = true
		}
	}
	for _, r := range required {
		if imported[r.Path] == r.Indirect {
			t.Errorf("go.mod: %s: imported here: %v, marked as indirect: %v: run go mod tidy", r.Path,
				imported[r.Path], r.Indirect)
		}
	}
}

// moduleOf returns the module among those required that has the package, or "".
func moduleOf(path string, all []requirement) string {
	found := ""
	for _, r := range all {
		if (path == r.Path || strings.HasPrefix(path, r.Path+"/")) && len(r.Path) > len(found) {
			found = r.Path
		}
	}
	return found
}
