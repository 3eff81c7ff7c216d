package rules

import (
	"fmt"
	"go/ast"
	"go/doc"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const packagesPage = "docs/packages.md"

// The page of packages has each package with the first sentence of its comment.
func TestPageOfPackagesIsCurrent(t *testing.T) {
	said := map[string]string{}
	eachSource(t, func(s *source) {
		inside := strings.HasPrefix(s.folder, "internal/") || strings.HasPrefix(s.folder, "lib/")
		if !inside || s.test() || strings.Contains(s.folder, "/testdata/") || s.syntax.Doc == nil {
			return
		}
		text := new(doc.Package).Synopsis(s.syntax.Doc.Text())
		text = strings.TrimPrefix(text, "Package "+s.syntax.Name.Name+" ")
		said[s.folder] = strings.ReplaceAll(text, "|", `\|`)
	})
	var made strings.Builder
	made.WriteString("# Packages\n\nThe first sentence of each package comment " +
		"(made by `go test ./rules -update`).\n\n| package | |\n| --- | --- |\n")
	for _, folder := range slices.Sorted(maps.Keys(said)) {
		fmt.Fprintf(&made, "| `%s` | %s |\n", folder, said[folder])
	}
	generated(t, packagesPage, made.String())
}

var link = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)|src="([^":]+)"`)

// code in a document is no link, whatever it looks like.
var code = regexp.MustCompile("(?s)```.*?```|`[^`]*`")

// A link from one document to another leads to a file that is there, and to one of its headings.
func TestLinks(t *testing.T) {
	err := walk(".md", func(path string, content []byte) error {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(string(content), ""), -1) {
			target := filepath.Join(root, filepath.Dir(path), match[1]+match[3])
			if match[1]+match[3] == "" {
				target = filepath.Join(root, path)
			}
			content, err := os.ReadFile(target)
			if err != nil && !isFolder(target) {
				t.Errorf("%s: the link to %s leads nowhere", path, match[1]+match[3])
			} else if match[2] != "" && !slices.Contains(anchors(string(content)), match[2][1:]) {
				t.Errorf("%s: %s has no heading %s", path, match[1], match[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// unlinked is what the anchor of a heading leaves out.
	unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors gives the names by which links reach the headings of a document.
func anchors(document string) []string {
	var names []string
	for _, match := range heading.FindAllStringSubmatch(document, -1) {
		names = append(names, strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return names
}

// fileName is a Go file that a comment or a document names, with the folders that it names before.
var fileName = regexp.MustCompile(`[A-Za-z0-9_./-]*[a-z0-9_]+\.go\b`)

// page is a document that a comment names.
var page = regexp.MustCompile(`docs/[a-z0-9/-]+\.md\b`)

// A Go file that a comment or a document names is there, and so is a document that a comment
// names. Notes of decisions and the changelog tell of what was, and code in a document may be
// somebody else's.
func TestNamedFilesAreThere(t *testing.T) {
	var paths []string
	eachSource(t, func(s *source) { paths = append(paths, "/"+s.path) })
	check := func(where, text string) {
		for _, name := range fileName.FindAllString(text, -1) {
			name = "/" + strings.TrimLeft(name, "./")
			if !slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, name) }) {
				t.Errorf("%s names %s, which is not there", where, name[1:])
			}
		}
	}
	eachSource(t, func(s *source) {
		for _, group := range s.syntax.Comments {
			where := positions.Position(group.Pos()).String()
			check(where, group.Text())
			for _, name := range page.FindAllString(group.Text(), -1) {
				if _, err := os.Stat(filepath.Join(root, name)); err != nil {
					t.Errorf("%s names %s, which is not there", where, name)
				}
			}
		}
	})
	err := walk(".md", func(path string, content []byte) error {
		if path != "CHANGELOG.md" && !strings.HasPrefix(path, "docs/decisions/") {
			check(path, fences.ReplaceAllString(string(content), ""))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var fences = regexp.MustCompile("(?s)```.*?```")

// place is a row of "Where it is decided": functions in the second column, the file in the third.
var place = regexp.MustCompile("^\\|[^|]*\\|([^|]*)\\| `([a-z_/]+\\.go)` \\|$")

// function is what may be the name of a function.
var function = regexp.MustCompile(`^[a-zA-Z]\w+$`)

// The functions that docs/architecture.md leads to are in the files that it names.
func TestPlacesOfDecisions(t *testing.T) {
	declared := map[string]bool{}
	eachSource(t, func(s *source) {
		for _, declaration := range s.syntax.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok {
				declared[s.path+" "+f.Name.Name] = true
				declared[f.Name.Name] = true
			}
		}
	})
	rows := 0
	for _, line := range linesOf(t, "docs/architecture.md") {
		row := place.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		rows++
		for i, named := range code.FindAllString(row[1], -1) {
			name := strings.Trim(named, "`")
			name = name[strings.LastIndex(name, ".")+1:]
			switch {
			case i == 0 && !declared[row[2]+" "+name]:
				t.Errorf("docs/architecture.md: %s has no function %s", row[2], named)
			case i > 0 && function.MatchString(name) && !strings.HasSuffix(named, ".go`") && !declared[name]:
				t.Errorf("docs/architecture.md: there is no function %s", named)
			}
		}
	}
	if rows == 0 {
		t.Error("docs/architecture.md has no table of places")
	}
}

// A term has one row in docs/glossary.md.
func TestGlossaryHasOneMeaningForEachTerm(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range linesOf(t, "docs/glossary.md") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| term |") {
			continue
		}
		for term := range strings.SplitSeq(strings.Split(line, "|")[1], ",") {
			term = strings.ToLower(strings.Trim(term, " `"))
			if seen[term] {
				t.Errorf("docs/glossary.md: %s stands twice", term)
			}
			seen[term] = true
		}
	}
}
