package cli

import (
	"strings"
	"testing"

	"fairway/internal/cli/console"
)

// A plan has no colours of the names in it.
func TestPlansBringNoColours(t *testing.T) {
	const name = "\x1b[32mfine\x1b[0m"
	var out strings.Builder
	c := commandsOf(&console.Console{Out: &out, Err: &out})
	c.printPlan("w", "results", &planObject{Reasons: []string{name}, Notes: []string{name}, Removes: []string{name}})
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), `\x1b[32mfine`) != 3 {
		t.Errorf("it says %q", out.String())
	}
}
