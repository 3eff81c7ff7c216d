package crate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fairway/test/program"
)

var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// interpreter names a Python with roc-validator.
const interpreter = "FAIRWAY_TEST_CRATE"

const workflow = `workflow: letters
about: letters made large, and counted
inputs:
  texts: {files: 'in/{name}.txt', as: 'in/{name}.txt'}
steps:
  large:
    each: in/{name}.txt
    writes: large/{name}.txt
    command: tr a-z A-Z < "$in" > "$out"
  pack:
    merge: large/{name}.txt
    writes: packed/
    command: mkdir "$out" && cp large/*.txt "$out"
  count:
    reads: {texts: packed/}
    writes: count.txt
    command: cat "$texts"/* | wc -c > "$out"
`

// TestCratesAreValid has crates of a run that has succeeded, of one that has failed, and of one that
// took all results of another.
func TestCratesAreValid(t *testing.T) {
	python := os.Getenv(interpreter)
	if python == "" {
		t.Skip("`make test-crate` installs roc-validator and runs this")
	}
	folder := t.TempDir()
	write(t, folder, "workflow.yaml", workflow)
	write(t, folder, "in/a.txt", "alpha\n")
	write(t, folder, "in/b c.txt", "beta\n")
	run(t, fairway, "run", filepath.Join(folder, "workflow.yaml"))
	check(t, python, export(t, folder, "crate"))
	check(t, python, export(t, folder, "crate.zip"))

	run(t, fairway, "run", filepath.Join(folder, "workflow.yaml"))
	check(t, python, export(t, folder, "again"))

	broken := t.TempDir()
	write(t, broken, "workflow.yaml", "workflow: broken\nsteps:\n  fail:\n    writes: a\n    command: exit 3\n")
	if out, err := exec.Command(fairway, "run", filepath.Join(broken, "workflow.yaml")).CombinedOutput(); err == nil {
		t.Fatalf("it did not fail:\n%s", out)
	}
	check(t, python, export(t, broken, "crate"))
}

func export(t *testing.T, folder, name string) string {
	t.Helper()
	crate := filepath.Join(folder, name)
	run(t, fairway, "-C", folder, "export", "--format", "ro-crate", "--agent", "https://orcid.org/0000-0002-1825-0097",
		"--license", "https://spdx.org/licenses/CC-BY-4.0", "-o", crate)
	if filepath.Ext(name) == ".zip" {
		return crate
	}
	text, err := os.ReadFile(filepath.Join(crate, "ro-crate-metadata.json"))
	if err != nil || !json.Valid(text) {
		t.Fatalf("the metadata are no JSON: %v", err)
	}
	return crate
}

func check(t *testing.T, python, crate string) {
	t.Helper()
	for _, profile := range []string{"workflow-run-crate", "provenance-run-crate"} {
		run(t, python, "validate.py", crate, profile, "REQUIRED")
	}
}

func run(t *testing.T, name string, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, arguments, err, out)
	}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
