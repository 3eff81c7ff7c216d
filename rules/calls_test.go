package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const callsPage = "docs/calls.md"

var (
	service = regexp.MustCompile(`(?ms)^service (\w+) \{\n(.*?)^\}`)
	call    = regexp.MustCompile(`(?m)((?:^  //.*\n)*)^  rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\);`)
)

// The page of calls has each call of the API, with its comment.
func TestPageOfCallsIsCurrent(t *testing.T) {
	var made strings.Builder
	made.WriteString("# Calls\n\nThe calls of [the API](api.md), with the comments of the files that have their " +
		"messages\n(made by `go test ./rules -update`).\n")
	for _, name := range []string{"api.proto", "rights.proto"} {
		content, err := os.ReadFile(filepath.Join(root, "internal/wire", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range service.FindAllStringSubmatch(string(content), -1) {
			fmt.Fprintf(&made, "\n## %s\n\n[internal/wire/%s](../internal/wire/%[2]s). Path: `/fairway.v1.%[1]s/CALL`.\n\n"+
				"| call | takes, gives | |\n| --- | --- | --- |\n", s[1], name)
			for _, c := range call.FindAllStringSubmatch(s[2], -1) {
				comment := strings.Join(strings.Fields(strings.ReplaceAll(c[1], "//", "")), " ")
				comment = strings.ReplaceAll(strings.TrimPrefix(comment, c[2]+" "), "|", `\|`)
				fmt.Fprintf(&made, "| `%s` | `%s`, %s`%s` | %s |\n", c[2], c[3], c[4], c[5], comment)
			}
		}
	}
	generated(t, callsPage, made.String())
}
