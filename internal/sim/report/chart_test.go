package report

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairway/internal/sim"
)

func TestWrappedLinesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-z]{1,12}`)).Draw(t, "words")
		limit := rapid.IntRange(12, 40).Draw(t, "limit")
		text := wrapped(strings.Join(words, " "), limit)
		for line := range strings.SplitSeq(text, "\n") {
			if len(line) > limit {
				t.Fatalf("%q is longer than %d", line, limit)
			}
		}
		if strings.Join(strings.Fields(text), " ") != strings.Join(words, " ") {
			t.Fatalf("%q lost some of %q", text, words)
		}
	})
}

// A range of sizes is drawn in the unit in which it is written.
func TestLevelsInTheirUnit(t *testing.T) {
	xs, unit, ok := numbers([]string{"500MB", "1GB", "16GB"})
	if !ok || unit != "GB" || xs[0] != 0.5 || xs[2] != 16 {
		t.Errorf("%v %q %v", xs, unit, ok)
	}
	if _, _, ok := numbers([]string{"1GB", "none"}); ok {
		t.Error("none counts as a number")
	}
}

// The table of a report has no columns of nothing but zeros, and all others.
func TestReportShowsWhatIsNotZero(t *testing.T) {
	row := sim.Row{
		Mean: make([]float64, len(sim.Metrics)), SD: make([]float64, len(sim.Metrics)), Runs: make([]sim.Run, 1),
	}
	row.Mean[slices.Index(sim.Metrics, "money")] = 12345.6
	c := Chapter{Results: &sim.Results{Rows: []sim.Row{row}}}
	if shown := c.Shown(); len(shown) != 1 || shown[0] != "money" {
		t.Errorf("shown: %v", shown)
	}
	if cell := valueCell(row, "money"); cell != "12346" {
		t.Errorf("one run is shown as %q", cell)
	}
}
