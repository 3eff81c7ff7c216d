package cli

import (
	"strings"
	"testing"
	"time"

	"fairway/internal/wire"
)

// A list of jobs counts them as the progress does: one that waits at a pilot does not run.
func TestJobsThatWaitAtAPilotDoNotRun(t *testing.T) {
	var text strings.Builder
	c := &console{out: &text, err: &text}
	c.printRest(&wire.ListJobsRequest{}, &wire.ListJobsResponse{
		Jobs: []*wire.JobSummary{{Id: 1}}, Total: 70, More: true,
		ByState: map[string]int64{"assigned": 64, "running": 2, "ready": 4},
	})
	want := "1 of 70 jobs (2 running, 68 queued); the next: --after 1; fewer: --state, --step\n"
	if text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
}

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
