package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a page: its language, and its text.
var block = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// Pages that begin with an example do what they say when their commands are typed one after the
// other. What was recorded by then can be explained and foretold, as for any other run.
func TestPagesAsTyped(t *testing.T) {
	for page, files := range map[string][]string{
		"README.md":                {"data/a.gz"},
		"docs/first-workflow.md":   nil,
		"docs/tutorials/lambda.md": nil,
		"docs/tutorials/tier0.md":  nil,
	} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			if page == "docs/tutorials/lambda.md" {
				needs(t, "bowtie2", "samtools", "bcftools")
			}
			folder := clone(t)
			for _, name := range files {
				mustRun(t, folder, "mkdir -p "+filepath.Dir(name)+"; echo words | gzip >"+name)
			}
			text, err := os.ReadFile("../../" + page)
			if err != nil {
				t.Fatal(err)
			}
			mustRun(t, folder, typed(string(text)))
			out := mustRun(t, folder, `find . -name .fairway -printf '%h\n' | while read -r run; do
				fairway -C "$run" what-if
				fairway -C "$run" why
				fairway -C "$run" jobs --limit 10000 --json | grep '"step"' | sort -u | cut -d'"' -f4 | while read -r step; do
					fairway -C "$run" explain "$step"
				done
				fairway -C "$run" export -o recorded.json
				fairway check recorded.json
				if [ -e "$run/workflow.yaml" ]; then fairway -C "$run" export --format ro-crate -o crate.zip; fi
				rm -f recorded.json crate.zip
			done`)
			for _, want := range []string{
				"Replayed as it was: ", "The critical path has ", "its outputs are committed", "is in order: ",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in what was printed:\n%s", want, out)
				}
			}
		})
	}
}

// typed is what a reader types: the commands of a page in their order, and its workflow. What builds
// and installs Fairway has been done; `make run` ends by running the example.
func typed(page string) string {
	var script strings.Builder
	workflow := ""
	write := func() {
		script.WriteString("cat >workflow.yaml <<'end of the workflow'\n" + workflow + "end of the workflow\n")
	}
	for _, b := range block.FindAllStringSubmatch(page, -1) {
		language, text := b[1], b[2]
		switch {
		case language == "yaml":
			workflow = text
			write()
		case language == "diff":
			workflow = changed(workflow, text)
			write()
		case language != "" || strings.HasPrefix(text, " "): // something that is shown, or to be changed
		default:
			for line := range strings.Lines(text) {
				switch word, _, _ := strings.Cut(line, " "); {
				case strings.HasSuffix(line, "# fails\n"):
					script.WriteString("if " + strings.TrimSuffix(line, "# fails\n") + "; then false; fi\n")
				case strings.HasPrefix(line, "make run"):
					script.WriteString("fairway run examples/lambda/workflow.yaml\n")
				case word == "fairway", word == "grep", word == "cp", word == "diff", word == "cat", word == "cd", word == "mkdir",
					word == "for", word == "seq",
					strings.HasPrefix(word, "./"):
					script.WriteString(line)
				}
			}
		}
	}
	return script.String()
}

// changed is a workflow after a change that a page shows: lines that go, and those in their place.
func changed(workflow, diff string) string {
	var before, after strings.Builder
	for line := range strings.Lines(diff) {
		if gone, ok := strings.CutPrefix(line, "-"); ok {
			before.WriteString(gone)
		} else {
			after.WriteString(line[1:])
		}
	}
	return strings.Replace(workflow, before.String(), after.String(), 1)
}

// clone is a folder with the examples, as in a clone in which nothing was run yet.
func clone(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, example := range []string{"lambda", "tier0"} {
		names, err := exec.Command("git", "-C", "../../examples/"+example, "ls-files").Output()
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.Lines(string(names)) {
			from := filepath.Join("../../examples", example, strings.TrimSpace(name))
			to := filepath.Join(folder, "examples", example, strings.TrimSpace(name))
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(to), 0o755)
			}
			if err == nil {
				err = os.WriteFile(to, text, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
}

func mustRun(t *testing.T, folder, script string) string {
	t.Helper()
	c := exec.Command("bash", "-euo", "pipefail", "-xc", script)
	c.Dir = folder
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(fairway)+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
