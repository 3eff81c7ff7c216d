package api

import (
	"strings"
	"testing"
	"time"

	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// A submission that cannot be meant is refused with what is wrong; what it leaves out has its default.
func TestSubmissionsAreLookedAt(t *testing.T) {
	uploads := func(paths ...string) (files []*wire.UploadedFile) {
		for _, p := range paths {
			files = append(files, &wire.UploadedFile{Path: p, Content: []byte(p)})
		}
		return files
	}
	for name, c := range map[string]struct {
		request *wire.SubmitWorkflowRequest
		refused string // a part of why; empty: it is taken
	}{
		"nothing":           {&wire.SubmitWorkflowRequest{}, ""},
		"a folder":          {&wire.SubmitWorkflowRequest{Folder: "/data"}, ""},
		"a relative folder": {&wire.SubmitWorkflowRequest{Folder: "data"}, `the folder "data" is relative`},
		"a folder and uploads": {
			&wire.SubmitWorkflowRequest{Folder: "/data", Uploads: uploads("x")}, "a folder or uploads",
		},
		"the longest key": {&wire.SubmitWorkflowRequest{Key: strings.Repeat("k", MaxKey)}, ""},
		"a longer key": {
			&wire.SubmitWorkflowRequest{Key: strings.Repeat("k", MaxKey+1)}, "the key has 257 bytes",
		},
		"a place of results":          {&wire.SubmitWorkflowRequest{Results: "/results"}, ""},
		"a relative place of results": {&wire.SubmitWorkflowRequest{Results: "results"}, "is relative"},
		"uploads":                     {&wire.SubmitWorkflowRequest{Uploads: uploads("a", "b/c")}, ""},
		"an upload above":             {&wire.SubmitWorkflowRequest{Uploads: uploads("a", "../c")}, `the path "../c"`},
		"an absolute upload":          {&wire.SubmitWorkflowRequest{Uploads: uploads("/c")}, `the path "/c"`},
		"a folder of uploads":         {&wire.SubmitWorkflowRequest{Uploads: uploads(".")}, `the path "."`},
		"an upload that goes up":      {&wire.SubmitWorkflowRequest{Uploads: uploads("a/../b")}, `the path "a/../b"`},
		"an upload without a name":    {&wire.SubmitWorkflowRequest{Uploads: uploads("")}, `the path ""`},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := submittedWorkflow(c.request)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("refused by %v; want %s", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if w.File != "workflow.yaml" || w.Scales.TimeScale != 1 || w.Scales.SizeScale != 1 {
				t.Errorf("without a file and scales: %+v", w)
			}
			if w.Folder != c.request.GetFolder() || w.Key != c.request.GetKey() ||
				(w.Results != "") != (c.request.GetResults() != "") {
				t.Errorf("of %v came %+v", c.request, w)
			}
			for i, file := range c.request.GetUploads() {
				if w.Uploads[i].Path != file.GetPath() || string(w.Uploads[i].Content) != file.GetPath() {
					t.Errorf("upload %d is %+v", i, w.Uploads[i])
				}
			}
		})
	}
	half, none := 0.5, 0.0
	w, err := submittedWorkflow(&wire.SubmitWorkflowRequest{File: "f", TimeScale: &half, SizeScale: &none, Priority: -3})
	if err != nil || w.File != "f" || w.Scales.TimeScale != 0.5 || w.Scales.SizeScale != 0 || w.Priority != -3 {
		t.Errorf("%+v, %v", w, err)
	}
}

// A run is found by words that are all in what is known of it, each in whatever part.
func TestRunsAreFoundByWords(t *testing.T) {
	run := &state.Run{
		Workflow: "Lambda", File: "steps.yaml", Account: taskqueue.Account{User: "ada", Group: "cms"},
		Parameters: map[string]string{"Year": "2024"},
	}
	for text, want := range map[string]bool{
		"lambda": true, "LAMB": true, "ada cms": true, "steps year=2024": true, "yaml 2024 ada": true,
		"ada atlas": false, "lambda2024": false, "year=2025": false,
	} {
		if got := fits(text)(run); got != want {
			t.Errorf("%q finds it: %t", text, got)
		}
	}
	if fits(" \t") != nil {
		t.Error("no words are words")
	}
}

// Of each result of a run that is removed it is told whether it goes, of many only in sum.
func TestRemovedResultsAreCounted(t *testing.T) {
	result := func(job string, bytes int64, others []taskqueue.RunID, until time.Time) RunResult {
		var r RunResult
		r.Job, r.Bytes, r.Others, r.Until = job, bytes, others, until
		return r
	}
	removed := &RemovedRun{Run: 3, Results: []RunResult{
		result("gone", 1, nil, time.Time{}),
		result("named", 10, []taskqueue.RunID{4}, time.Time{}),
		result("promised", 100, nil, time.Unix(5, 0)),
	}}
	w := removed.toWire()
	if w.GetResultsGone() != 1 || w.GetResultBytesGone() != 1 || w.GetResultsKept() != 2 ||
		w.GetResultBytesKept() != 110 || len(w.GetResults()) != 3 || w.GetRun() != 3 {
		t.Errorf("%v", w)
	}
	for range maxResultsTold {
		removed.Results = append(removed.Results, result("gone", 1, nil, time.Time{}))
	}
	w = removed.toWire()
	if len(w.GetResults()) != maxResultsTold || w.GetResultsGone() != maxResultsTold+1 {
		t.Errorf("%d results are told, of %d that go", len(w.GetResults()), w.GetResultsGone())
	}
}
