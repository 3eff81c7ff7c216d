package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every package stands in the table of docs/architecture.md, and every package
// of the table is there.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	text := strings.Join(linesOf(t, "docs/architecture.md"), "\n")
	seen := map[string]bool{}
	eachSource(t, func(s *source) {
		if s.test() || seen[s.folder] || !strings.HasPrefix(s.folder, "internal/") && s.folder != "orwl" && s.folder != "sched" {
			return
		}
		seen[s.folder] = true
		if !strings.Contains(text, "`"+s.folder+"`") && !strings.Contains(text, "`"+filepath.Base(s.folder)+"`") {
			t.Errorf("docs/architecture.md does not name the package %s", s.folder)
		}
	})
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)|src="([^":]+)"`)

// code in a document is no link, whatever it looks like.
var code = regexp.MustCompile("(?s)```.*?```|`[^`]*`")

// A link from one document to another leads to a file that is there.
func TestLinks(t *testing.T) {
	err := walk(".md", func(path string, content []byte) error {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(string(content), ""), -1) {
			target := match[1] + match[3]
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), target)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
