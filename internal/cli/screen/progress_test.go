package screen

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
	l.Show(done)
	if out.Len() > 0 {
		t.Errorf("it says at once %q", out.String())
	}
	now = now.Add(plainInterval)
	l.Show(done)
	if !strings.Contains(out.String(), "18/18+ jobs") {
		t.Errorf("after %v it says %q", plainInterval, out.String())
	}
}

// A log has a line each minute, though nothing changes, and tells that what runs is not heard of.
func TestALineEachMinute(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	l := &lines{out: &out, now: func() time.Time { return now }}
	report := &wire.ProgressReport{
		Summary: &wire.Summary{}, Steps: []*wire.StepProgress{{Step: "a", Running: 3, Total: 3}}, RunningUnheard: 2,
	}
	for range 2*60 + 1 {
		l.Show(report)
		now = now.Add(time.Second)
	}
	const line = "3 running (2 of those that run are not heard of: their pilots are silent)\n"
	if strings.Count(out.String(), line) != 3 || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("in two minutes it says %q", out.String())
	}
}
