package rules

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testCommand is how docs/papers.md names a test: a package of this module or of that of the
// libraries, and the beginning of the name.
var testCommand = regexp.MustCompile("`go test (\\S+) -run (\\w+)(?:/\\w+)?`")

// What the commands of docs/papers.md run is there.
func TestCommandsOfThePapersRunSomething(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/papers.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	commands := testCommand.FindAllStringSubmatch(string(text), -1)
	if len(commands) == 0 {
		t.Error("no commands")
	}
	for _, c := range commands {
		folder := strings.TrimPrefix(strings.TrimPrefix(c[1], "fairway/"), "./")
		found := false
		for _, s := range files {
			if s.folder != folder {
				continue
			}
			for _, d := range s.syntax.Decls {
				f, ok := d.(*ast.FuncDecl)
				found = found || ok && strings.HasPrefix(f.Name.Name, c[2])
			}
		}
		if !found {
			t.Errorf("%s: no such test", c[0])
		}
	}
	for _, c := range regexp.MustCompile("`go run (\\./\\S+)[ `]").FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, strings.Trim(c[1], "`"))); err != nil {
			t.Error(err)
		}
	}
}

// What scripts/mutate shows of a test is shown of one that docs/papers.md cites.
func TestMutationsAreOfTestsThatAreCited(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/papers.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(filepath.Join(root, "scripts/mutate/mutations.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rows)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "go test") && !strings.Contains(string(text), line) {
			t.Errorf("docs/papers.md does not cite %s", line)
		}
	}
}
