package cli

import (
	"strings"
	"testing"
	"time"

	"fairway/internal/wire"
)

// A run in which all is done does not say so before it knows whether more is to come.
func TestNoProgressOfARunWithNothingToDo(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	l := &lines{out: &out, now: func() time.Time { return now }}
	done := &wire.ProgressReport{Summary: &wire.Summary{}, Steps: []*wire.StepProgress{{Step: "a", Done: 18, Total: 18}}}
	l.show(done)
	if out.Len() > 0 {
		t.Errorf("it says at once %q", out.String())
	}
	now = now.Add(plainInterval)
	l.show(done)
	if !strings.Contains(out.String(), "18/18+ jobs") {
		t.Errorf("after %v it says %q", plainInterval, out.String())
	}
}
