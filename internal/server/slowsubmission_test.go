package server

import (
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/wire"
	"fairway/test/files"
)

// A submission whose input is on a slow server keeps no other waiting, but for one with its key,
// which becomes the same run.
func TestSlowInputsKeepNoOtherSubmissionWaiting(t *testing.T) {
	asked, goOn := make(chan struct{}, 8), make(chan struct{})
	site := sitting(t, func(string) int {
		asked <- struct{}{}
		<-goOn
		return http.StatusOK
	})
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	slow := &wire.SubmitWorkflowRequest{Folder: t.TempDir(), Key: "nightly", Workflow: []byte(`workflow: slow
inputs: {far: {files: "` + site + `/a.txt", as: in/a.txt}}
steps:
  upper: {each: "in/{s}.txt", writes: "upper/{s}.txt", command: tr}
  join: {merge: "upper/{s}.txt", writes: joined.txt, command: cat}
`)}
	type answer struct {
		run   uint32
		known bool
		err   error
	}
	answers := make(chan answer, 2)
	for range 2 {
		go func() {
			a, err := v.client.SubmitWorkflow(t.Context(), slow)
			answers <- answer{a.GetRun(), a.GetKnown(), err}
		}()
	}
	<-asked
	quick := v.submit(twoSteps, files.Folder(t, threeTexts), nil)
	if end := v.await(quick); !end.GetSucceeded() {
		t.Error(end)
	}
	_, err := v.client.SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
		Workflow: []byte(twoSteps), Folder: t.TempDir(), // without inputs
	})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Error(err)
	}
	close(goOn)
	first, second := <-answers, <-answers
	if first.err != nil || second.err != nil || first.run != second.run || first.known == second.known {
		t.Errorf("one key is two runs: %+v, %+v; %v, %v", first, second, first.err, second.err)
	}
	if end := v.await(first.run); !end.GetSucceeded() {
		t.Error(end)
	}
	if next := v.submit(twoSteps, files.Folder(t, threeTexts), nil); next != 3 {
		t.Errorf("run %d, and not 3: a refused submission has a number", next)
	}
}
