package server

import (
	"fmt"
	"testing"

	"fairway/internal/rights"
	"fairway/internal/server/api"
	"fairway/internal/wire"
	"fairway/test/files"
)

// What pages ask of a run that is put away: all of its jobs are known, its results are found, and so is the run by
// what it was submitted with.
func TestPagesOfARunThatIsPutAway(t *testing.T) {
	texts := files.Folder(t, threeTexts)
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	for range 3 {
		if end := v.await(v.submit(twoSteps, texts, nil)); !end.GetSucceeded() {
			t.Error(end)
		}
	}
	v.retired(3)
	ctx, service := rights.With(t.Context(), rights.Owner), v.server.service()
	o, err := service.Overview(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range o.Report.GetSteps() {
		if !step.GetTotalFinal() {
			t.Errorf("of step %s more may come", step.GetStep())
		}
	}
	for q, want := range map[api.FileSearch]string{
		{Results: true, Limit: 9}:                          "[joined.txt] of 1",
		{Text: "JOIN", Limit: 9}:                           "[joined.txt] of 1",
		{Text: "in/", From: 1, Limit: 1}:                   "[in/b.txt] of 3",
		{Text: "nothing", Limit: 9}:                        "[] of 0",
		{Text: "joined", Results: true, From: 7, Limit: 9}: "[] of 1",
	} {
		found, err := service.SearchFiles(ctx, 2, q)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, file := range found.Files {
			names = append(names, file.GetLfn())
		}
		if got := fmt.Sprint(names, " of ", found.All); got != want {
			t.Errorf("%+v finds %s, and not %s", q, got, want)
		}
	}
	for want, q := range map[string]*wire.ListRunsRequest{
		"[3 2] true": {Limit: 2}, "[1] false": {Limit: 2, Before: 2}, "[3 2 1] false": {Text: "DEMO"},
		"[] false": {Text: "demo other"},
	} {
		found, err := service.ListRuns(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		numbers := []uint32{}
		for _, run := range found.GetRuns() {
			numbers = append(numbers, run.GetRun())
		}
		if got := fmt.Sprint(numbers, " ", found.GetMore()); got != want {
			t.Errorf("%v finds %s, and not %s", q, got, want)
		}
	}
	if run, err := service.RunOf(ctx, 2); err != nil || run.GetRun() != 2 || run.GetFolder() == "" {
		t.Errorf("%v, %v", run, err)
	}
	if run, err := service.RunOf(ctx, 9); err == nil {
		t.Error(run)
	}
}

// Pages name a job by its number: none that has this number for a name is taken for it.
func TestJobsWithNumbersForNames(t *testing.T) {
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	v.submit("workflow: odd\nsteps:\n  first: {writes: a, command: x, needs: {memory: 1PB}}\n"+
		"  \"1\": {writes: b, command: x, needs: {memory: 1PB}}\n", t.TempDir(), func(r *wire.SubmitWorkflowRequest) {
		r.WaitAnyway = true
	})
	for text, want := range map[string]uint32{"1": 2, api.JobNumber + "1": 1, api.JobNumber + "2": 2, "first": 1} {
		job, err := v.client.ShowJob(t.Context(), &wire.ShowJobRequest{Run: 1, Job: text})
		if err != nil || job.GetSummary().GetId() != want {
			t.Errorf("%s is job %d: %v", text, job.GetSummary().GetId(), err)
		}
	}
}
