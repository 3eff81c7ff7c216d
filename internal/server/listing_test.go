package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/test/files"
)

// lists is a workflow with jobs that end in several ways.
const lists = `
workflow: lists
inputs:
  texts: {files: "in/{name}.txt", as: "in/{name}.txt"}
steps:
  upper:
    each: "in/{name}.txt"
    writes: "upper/{name}.txt"
    retry: {attempts: 2, backoff: 1ms}
    command: tr a-z A-Z
  count: {each: "in/{name}.txt", writes: "count/{name}.txt", command: wc}
  join: {merge: "upper/{name}.txt", writes: joined.txt, command: cat $in}
`

// A run that has ended is listed from few of its records as it is from all.
func TestListingFromFewRecords(t *testing.T) {
	t.Parallel()
	root := files.Folder(t, threeTexts)
	fails := true
	script := func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		if fails && strings.HasSuffix(a.GetName(), "/b") {
			return nil, 3
		}
		return twoStepsScript(a, read)
	}
	r := newRun(t, root, lists, script)
	r.config.KeepGoing = true
	if r.run().Succeeded {
		t.Fatal("the run succeeded")
	}
	for _, job := range []string{"failed", "done"} {
		if !compareLists(t, root, &wire.ListJobsRequest{States: []string{job}}) {
			t.Errorf("jobs that are %s are not listed from few records", job)
		}
	}
	compareAllLists(t, root)
	fails = false
	newRun(t, root, lists, script).mustSucceed()
	if !compareLists(t, root, &wire.ListJobsRequest{}) {
		t.Error("jobs that are all done are not listed from few records")
	}
	compareAllLists(t, root)
}

func compareAllLists(t *testing.T, root string) {
	t.Helper()
	for _, states := range [][]string{
		nil, {"done"}, {"failed"}, {"blocked", "done"}, {"ready", "waiting"}, {"cancelled"},
	} {
		for _, steps := range [][]string{nil, {"upper"}, {"count", "join"}, {"none"}} {
			for _, limit := range []int32{0, 2} {
				for _, after := range []uint32{0, 5} {
					compareLists(t, root, &wire.ListJobsRequest{States: states, Steps: steps, Limit: limit, After: after})
				}
			}
		}
	}
}

// compareLists reports whether few records were enough.
func compareLists(t *testing.T, root string, r *wire.ListJobsRequest) bool {
	t.Helper()
	v, err := api.OpenResting(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := v.List(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	var want *wire.ListJobsResponse
	if err := v.QueryAll(context.Background(), func(c *state.Cores) { want = api.ListOf(c, r) }); err != nil {
		t.Fatal(err)
	}
	if quick != nil && !proto.Equal(quick, want) {
		t.Errorf("%v: got\n%v\nwant\n%v", r, quick, want)
	}
	return quick != nil
}

// A list takes records of the listed jobs only, and is read in pages.
func TestListingReadsPages(t *testing.T) {
	t.Parallel()
	text, inputs := manyFiles(2*api.ListingPage + 10)
	r := newRun(t, files.Folder(t, inputs), text, func(a *wire.Assignment,
		_ func(string) string) (map[string]string, int) {
		return map[string]string{a.GetOutputs()[0].GetLfn(): ""}, 0
	})
	r.mustSucceed()
	for _, request := range []*wire.ListJobsRequest{
		{}, {After: api.ListingPage - 1, Limit: 2}, {After: api.ListingPage, Limit: api.ListingPage},
		{After: api.ListingPage + 10, Limit: api.ListingPage},
	} {
		if !compareLists(t, r.folder, request) {
			t.Errorf("%v is not answered from few records", request)
		}
	}
}

func TestNoTotalsWhileAttemptsAreUnderWay(t *testing.T) {
	var resting, running taskqueue.StepTotals
	resting.ByState[taskqueue.Done], running.ByState[taskqueue.Running] = 1, 1
	if !atRest([]taskqueue.StepTotals{resting}) || atRest([]taskqueue.StepTotals{resting, running}) {
		t.Error("a running attempt counts as at rest")
	}
}

// Who asks about one job after the other has the records read twice, and not for each.
func TestManyJobsOfAnEndedRunAreAskedAbout(t *testing.T) {
	root := files.Folder(t, threeTexts)
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	v, err := api.OpenResting(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(root, folder.StateFolder, folder.StoreFile)
	for number := range uint32(4) {
		id := taskqueue.NewJobID(v.ID(), number+1)
		err := v.Query(t.Context(), id, func(c *state.Cores) {
			if n := c.Tally.Attempts.Count(id); n != 1 {
				t.Errorf("job %d has %d attempts", number+1, n)
			}
		})
		if err != nil {
			t.Error(err)
		}
		if number == 1 {
			if err := os.Rename(records, records+"-away"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
