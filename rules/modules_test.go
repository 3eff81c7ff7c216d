package rules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// requirement is a module in go.mod, as `go mod edit -json` tells of it.
type requirement struct {
	Path     string
	Indirect bool
}

func requirements(t *testing.T, folder string) []requirement {
	t.Helper()
	command := exec.Command("go", "mod", "edit", "-json")
	command.Dir = filepath.Join(root, folder)
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
	for _, folder := range []string{".", "lib"} {
		required := requirements(t, folder)
		imported := map[string]bool{}
		for _, s := range files {
			if strings.HasPrefix(s.folder, "lib/") != (folder == "lib") {
				continue
			}
			for _, spec := range s.syntax.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				imported[moduleOf(path, required)] = true
			}
		}
		for _, r := range required {
			if imported[r.Path] == r.Indirect {
				t.Errorf("%s/go.mod: %s: imported here: %v, marked as indirect: %v: run go mod tidy",
					folder, r.Path, imported[r.Path], r.Indirect)
			}
		}
	}
}

// The libraries are a module of their own, so that who imports them gets what they need and not
// what the rest of Fairway needs.
func TestModuleOfTheLibraries(t *testing.T) {
	for _, r := range requirements(t, "lib") {
		if r.Path == "fairway" {
			t.Error("lib/go.mod requires fairway")
		}
	}
	command := exec.Command("go", "list", "-deps", "fairway/lib/...")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	for dependency := range strings.FieldsSeq(string(out)) {
		host, _, _ := strings.Cut(dependency, "/")
		if strings.Contains(host, ".") && !strings.HasPrefix(dependency, "golang.org/x/sys/") {
			t.Errorf("fairway/lib depends on %s", dependency)
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

// Who adopts the libraries need not have the newest patch release of Go.
func TestLibrariesAskForNoPatchRelease(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "lib/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^go 1\.\d+\.0$`).Match(text) {
		t.Error("lib/go.mod: the go directive names a patch release, which refuses those before")
	}
}
