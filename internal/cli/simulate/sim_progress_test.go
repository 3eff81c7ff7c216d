package simulate

import (
	"strings"
	"testing"
	"time"

	"fairway/internal/cli/screen"
)

func TestCountBarStaysOnItsLine(t *testing.T) {
	var out strings.Builder
	bar := &countBar{out: &out, what: "runs", width: func() int { return 30 }}
	bar.show(1, 12)
	bar.show(12, 12)
	const want = "#..............  1 of 12 runs" + screen.ClearToEdge + "\n" +
		"\x1b[1A\r############### 12 of 12 runs" + screen.ClearToEdge + "\n"
	if out.String() != want {
		t.Errorf("got\n%q, want\n%q", out.String(), want)
	}
}

func TestCountBarInANarrowTerminal(t *testing.T) {
	var out strings.Builder
	bar := &countBar{out: &out, what: "runs", width: func() int { return 10 }}
	bar.show(3, 12)
	if got := out.String(); got != "  3 of 12 runs"+screen.ClearToEdge+"\n" {
		t.Errorf("got %q", got)
	}
}

func TestCountLinesAreRare(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1, 0)
	lines := &countLines{out: &out, what: "runs", now: func() time.Time { return now }}
	for done := range 30 {
		lines.show(done+1, 30)
		now = now.Add(time.Second)
	}
	if got := out.String(); got != "11 of 30 runs\n21 of 30 runs\n" {
		t.Errorf("got %q", got)
	}
}
