package site

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make the table of keys of a site again")

// The table of keys of a site in docs/keys.md is that of the parser.
func TestTableOfKeysIsCurrent(t *testing.T) {
	const page, head = "../../docs/keys.md", "| key of a site | meaning |\n| --- | --- |\n"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, table, found := strings.Cut(string(content), head)
	table, after, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table of keys of a site", page)
	}
	var rows []string
	for _, k := range Keys {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", k.Name, k.Help))
	}
	made := strings.Join(append(rows, "| `command` | a template of your own, with `system: command` |"), "\n")
	if table == made {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the keys of the parser give; run go test ./internal/site -run TableOfKeys -update", page)
	}
	if err := os.WriteFile(page, []byte(before+head+made+"\n\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
