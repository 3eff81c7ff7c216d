package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// message is a row of docs/when-it-fails.md that begins with what Fairway says.
	message = regexp.MustCompile("(?m)^\\| `([^`]+)`")
	// given is what differs from message to message: amounts, names of files, what is left out.
	given = regexp.MustCompile(`\S*\d\S*( [GM]B)?|\S+\.txt|…`)
)

// The messages that docs/when-it-fails.md explains are those of the program, but for what is given.
func TestExplainedMessagesAreSaid(t *testing.T) {
	var said strings.Builder
	eachSource(t, func(s *source) {
		if s.test() || s.generated {
			return
		}
		content, err := os.ReadFile(filepath.Join(root, s.path))
		if err != nil {
			t.Fatal(err)
		}
		said.Write(content)
	})
	rows := message.FindAllStringSubmatch(strings.Join(linesOf(t, "docs/when-it-fails.md"), "\n"), -1)
	if len(rows) < 20 {
		t.Errorf("docs/when-it-fails.md explains only %d messages", len(rows))
	}
	for _, row := range rows {
		parts := given.Split(row[1], -1)
		longest := strings.Trim(slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) }), " :;,")
		if !strings.Contains(said.String(), longest) {
			t.Errorf("docs/when-it-fails.md: nobody says %q", longest)
		}
	}
}
