package look

import (
	"strings"
	"testing"

	"fairway/internal/cli/console"
	"fairway/internal/wire"
)

// A list of jobs counts them as the progress does: one that waits at a pilot does not run.
func TestJobsThatWaitAtAPilotDoNotRun(t *testing.T) {
	var text strings.Builder
	c := New(&console.Console{Out: &text, Err: &text})
	c.printRest(&wire.ListJobsRequest{}, &wire.ListJobsResponse{
		Jobs: []*wire.JobSummary{{Id: 1}}, Total: 70, More: true,
		ByState: map[string]int64{"assigned": 64, "running": 2, "ready": 4},
	})
	want := "1 of 70 jobs (2 running, 68 queued); the next: --after 1; fewer: --state, --step\n"
	if text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
}
