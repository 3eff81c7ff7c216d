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

// A log has a line each minute, though nothing changes, and tells that what runs is not heard of.
func TestALineEachMinute(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	l := &lines{out: &out, now: func() time.Time { return now }}
	report := &wire.ProgressReport{
		Summary: &wire.Summary{}, Steps: []*wire.StepProgress{{Step: "a", Running: 3, Total: 3}}, RunningUnheard: 2,
	}
	for range 2*60 + 1 {
		l.show(report)
		now = now.Add(time.Second)
	}
	const line = "3 running (2 of those that run are not heard of: their pilots are silent)\n"
	if strings.Count(out.String(), line) != 3 || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("in two minutes it says %q", out.String())
	}
}

// Jobs on silent pilots are no progress.
func TestASilentPilotIsAStandstill(t *testing.T) {
	s := standstill{pause: standstillTime}
	s.observe(&wire.ProgressReport{Steps: []*wire.StepProgress{{Running: 2}}, RunningUnheard: 2})
	if s.since.IsZero() {
		t.Error("that all that runs is not heard of is not noticed")
	}
	s.observe(&wire.ProgressReport{Steps: []*wire.StepProgress{{Running: 3}}, RunningUnheard: 2})
	if !s.since.IsZero() {
		t.Error("a job runs")
	}
}
