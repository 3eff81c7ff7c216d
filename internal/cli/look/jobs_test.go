package look

import (
	"context"
	"slices"
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
			all += c.Text() + " "
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

// silentJobs is a server with many jobs, of which every second has a silent pilot.
type silentJobs struct {
	wire.WorkflowClient
	jobs uint32
}

// ListJobs gives them in pages of two.
func (s silentJobs) ListJobs(_ context.Context, r *wire.ListJobsRequest) (*wire.ListJobsResponse, error) {
	page := &wire.ListJobsResponse{Total: int64(s.jobs)}
	for id := r.GetAfter() + 1; id <= s.jobs && len(page.Jobs) < 2; id++ {
		job := &wire.JobSummary{Id: id, State: "running"}
		if id%2 == 0 {
			job.Silent = timestamppb.New(time.Unix(1000, 0))
		}
		page.Jobs = append(page.Jobs, job)
		page.More = id < s.jobs
	}
	return page, nil
}

// The word that the list shows for their state finds jobs of silent pilots.
func TestJobsOfSilentPilotsAreFound(t *testing.T) {
	if got := statesOf("silent"); !slices.Equal(got, []string{"assigned", "running"}) {
		t.Errorf("silent means %q", got)
	}
	found, err := silentOf(t.Context(), silentJobs{jobs: 9}, &wire.ListJobsRequest{Limit: 3})
	if err != nil || len(found.Jobs) != 3 || found.Jobs[2].Id != 6 || found.Total != 4 || !found.More {
		t.Errorf("found %v, %v", found, err)
	}
}
