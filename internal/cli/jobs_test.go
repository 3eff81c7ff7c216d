package cli

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/wire"
)

// A job whose pilot is silent is not said to run: nobody knows that.
func TestJobsOfSilentPilotsAreShownAsSuch(t *testing.T) {
	now := time.Unix(1000, 0)
	job := &wire.JobSummary{Id: 1, Name: "a/1", State: "running", Pilot: "p1"}
	text := func() (all string) {
		for _, c := range jobRow(job, timestamppb.New(now)) {
			all += c.text + " "
		}
		return all
	}
	if got := text(); !strings.Contains(got, "running") || !strings.Contains(got, "on p1") {
		t.Errorf("a job that runs: %s", got)
	}
	job.Silent = timestamppb.New(now.Add(-12 * time.Second))
	const since = "on p1, which has not been heard of for 12.0 s"
	if got := text(); strings.Contains(got, "running") || !strings.Contains(got, since) {
		t.Errorf("a job of a silent pilot: %s", got)
	}
}
