package api

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Of two commands that differ, what is shown differs too, however long their lines are.
func TestShownChangesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`[ab]{0,200}`)
		text := rapid.SliceOfN(line, 1, 4)
		before, now := text.Draw(t, "before"), text.Draw(t, "now")
		lines := commandChanges(before, now)
		if (len(lines) == 0) != (strings.Join(before, "\n") == strings.Join(now, "\n")) {
			t.Fatalf("%q and %q: %q", before, now, lines)
		}
		var removed, added []string
		for _, l := range lines {
			if len(l) > 4+lineShown+3 {
				t.Fatalf("a line has %d columns", len(l))
			}
			if shown, ok := strings.CutPrefix(l, "  - "); ok {
				removed = append(removed, shown)
			} else if shown, ok := strings.CutPrefix(l, "  + "); ok {
				added = append(added, shown)
			}
		}
		if len(lines) > 0 && slices.Equal(removed, added) {
			t.Fatalf("%q and %q look alike: %q", before, now, lines)
		}
	})
}
