package crate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// answered has steps in an image, in an environment and with a program that nodes must have.
const answered = `workflow: answered
inputs:
  texts: {files: 'in/{name}.txt', as: 'in/{name}.txt'}
steps:
  large:
    each: in/{name}.txt
    writes: large/{name}.txt
    container: system/
    tools: [tr]
    command: tr a-z A-Z < "$in" > "$out"
  count:
    merge: large/{name}.txt
    writes: count.txt
    environment: requirements.txt
    command: cat $in | wc -c > "$out"
`

// TestQuestionsAreAnswered asks a crate the competency questions of the working group.
func TestQuestionsAreAnswered(t *testing.T) {
	python := os.Getenv(interpreter)
	if python == "" {
		t.Skip("`make test-crate` installs rdflib and runs this")
	}
	for _, tool := range []string{"bwrap", "uv"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	folder := t.TempDir()
	write(t, folder, "workflow.yaml", answered)
	write(t, folder, "in/a.txt", "alpha\n")
	write(t, folder, "requirements.txt", "")
	makeSystem(t, filepath.Join(folder, "system"))
	run(t, fairway, "run", filepath.Join(folder, "workflow.yaml"))
	crate := export(t, folder, "crate")
	check(t, python, crate)

	out, err := exec.Command(python, "questions.py", crate).Output()
	if err != nil {
		t.Fatal(err, string(out))
	}
	var answers map[string][][]string
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	has := func(question string, want ...string) {
		t.Helper()
		for _, answer := range answers[question] {
			if slices.EqualFunc(want, answer, func(want, got string) bool { return want == "" && got != "" || want == got }) {
				return
			}
		}
		t.Errorf("question %s is answered by %q, and not by %q", question, answers[question], want)
	}
	const done = "http://schema.org/CompletedActionStatus"
	has("1", "system/", "")
	has("2", "large/a", "processorTime", "", "http://qudt.org/vocab/unit/SEC")
	has("2", "count", "processorTime", "", "http://qudt.org/vocab/unit/SEC") // of so small a job no memory is known
	if len(answers["3"]) > 0 {
		t.Errorf("a run on one machine has no configuration, and %q is told", answers["3"])
	}
	has("4", "count", "requirements.txt")
	has("5", "large/a", "", "")
	has("6", "", "")
	has("7", "Run of answered", done)
	has("7", "count", done)
	has("8", "in", "in/a.txt")
	has("8", "out", "count.txt")
	has("9", "Fairway", "")
	has("9", "large", "")
	has("10", "large", "tr")
	has("11", "input", "large", "in/a.txt")
}

// makeSystem makes an image: the programs of this machine, by links that its own folders satisfy.
func makeSystem(t *testing.T, folder string) {
	t.Helper()
	run(t, "sh", "-ec", `mkdir -p "$0/bin" "$0/tmp" "$0/proc" "$0/dev"
for program in /bin/sh /bin/bash /usr/bin/tr; do
	cp -L "$program" "$0/bin/"
	ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$0$(dirname "$library")"
		cp -L "$library" "$0$library"
	done
done`, folder)
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
