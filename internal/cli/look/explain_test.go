package look

import (
	"strings"
	"testing"

	"fairway/internal/cli/console"
	"fairway/internal/wire"
)

// What is explained has no colours of the names in it.
func TestExplanationsBringNoColours(t *testing.T) {
	const name = "\x1b[32mfine\x1b[0m"
	var out strings.Builder
	c := New(&console.Console{Out: &out, Err: &out})
	c.printExplanation(&wire.ExplainResponse{
		Summary: &wire.JobSummary{Name: name, Notes: []string{name}}, Lines: []string{name},
	})
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), `\x1b[32mfine`) != 3 {
		t.Errorf("it says %q", out.String())
	}
}
