package server

import (
	"bytes"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/wire"
	"fairway/lib/client"
	"fairway/test/files"
)

// The Go client submits, waits, lists, fetches and is refused, by the socket of a server.
func TestGoClient(t *testing.T) {
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	c, err := client.Open(v.root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	submitted, err := c.SubmitWorkflow(ctx, &client.SubmitWorkflowRequest{
		Workflow: []byte(twoSteps), Folder: files.Folder(t, threeTexts), Key: "nightly",
	})
	if err != nil {
		t.Fatal(err)
	}
	run := c.About(submitted.Run)
	last, err := run.Wait(ctx)
	if err != nil || !last.Succeeded || last.Summary.Jobs == 0 {
		t.Fatal(last, err)
	}
	jobs, err := run.ListJobs(ctx, &client.ListJobsRequest{States: []string{"done"}})
	if err != nil || jobs.Total != last.Summary.Jobs || int64(jobs.ByState["done"]) != jobs.Total ||
		jobs.Jobs[0].Ended.IsZero() {
		t.Error(jobs, err)
	}
	list, err := run.ListFiles(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	copied := 0
	for _, file := range list.Files {
		newest := file.Versions[len(file.Versions)-1]
		if newest.State != "present" || newest.Writer == nil {
			continue
		}
		var text bytes.Buffer
		n, err := run.Copy(ctx, &text, file.LFN, 0)
		if err != nil || n != newest.Size || int64(text.Len()) != n {
			t.Error(file.LFN, n, newest.Size, err)
		}
		copied++
	}
	if copied == 0 {
		t.Error("no file was copied")
	}
	if _, err := c.About(99).ListJobs(ctx, nil); client.CodeOf(err) != client.NotFound {
		t.Error(err)
	}
	_, err = c.SubmitWorkflow(ctx, &client.SubmitWorkflowRequest{Workflow: []byte("steps: 3")})
	if client.CodeOf(err) != client.InvalidArgument {
		t.Error(err)
	}
}

// Messages of the Go client are those of the API, both ways.
func TestMessagesOfTheGoClient(t *testing.T) {
	sent := &client.SubmitRequest{Run: 3, Jobs: []*client.SubmittedJob{{
		Name: "a", Payload: &client.Payload{Shell: "true", Environment: map[string]string{"x": "1"}},
		Reads: []*client.SubmittedInput{{LFN: "in", Access: client.AccessStream}},
		Needs: &client.Resources{MemoryBytes: 1 << 40, Countable: map[string]client.Int64{"licence": 2}},
		Retry: &client.RetryPolicy{Attempts: 2, Backoff: client.Duration(1500e6), ExitCodes: []int32{7}},
	}}}
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	got := new(wire.SubmitRequest)
	if err := protojson.Unmarshal(text, got); err != nil {
		t.Fatal(err)
	}
	want := &wire.SubmitRequest{Run: 3, Jobs: []*wire.SubmittedJob{{
		Name: "a", Payload: &wire.Payload{Shell: "true", Environment: map[string]string{"x": "1"}},
		Reads: []*wire.SubmittedInput{{Lfn: "in", Access: wire.Access_ACCESS_STREAM}},
		Needs: &wire.Resources{MemoryBytes: 1 << 40, Countable: map[string]int64{"licence": 2}},
		Retry: &wire.RetryPolicy{Attempts: 2, Backoff: durationpb.New(1500e6), ExitCodes: []int32{7}},
	}}}
	if !proto.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	text, err = protojson.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	back := new(client.SubmitRequest)
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	first, _ := json.Marshal(sent)
	if err != nil || string(again) != string(first) {
		t.Errorf("%s\n%s %v", again, first, err)
	}
}
