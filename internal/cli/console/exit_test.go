package console

import (
	"strings"
	"testing"
)

// What went wrong is told without the colours of what it names.
func TestTroubleBringsNoColours(t *testing.T) {
	const name = "\x1b[32mfine\x1b[0m"
	var out strings.Builder
	c := &Console{Out: &out, Err: &out}
	c.PrintTrouble(trouble{Error: name, Hint: name})
	c.Announce(name)
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), `\x1b[32mfine`) != 3 {
		t.Errorf("it says %q", out.String())
	}
}
