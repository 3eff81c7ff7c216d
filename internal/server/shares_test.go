package server

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/store"
	"fairway/internal/wire"
	"fairway/test/files"
)

// A run belongs to who has connected, in a group that the file of shares has; that is known after a
// restart, as is what was used. The file is read again when it changes.
func TestRunsBelongToWhoSubmits(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	root, texts := t.TempDir(), files.Folder(t, threeTexts)
	file := filepath.Join(root, "shares.yaml")
	say := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say(fmt.Sprintf("groups:\n  physics: {weight: 3, users: {%s: 2, other: 1}}\n  biology: {users: {other: 1}}\n",
		me.Username))
	start := func() *service {
		real := func(s store.Store) store.Store { return s }
		return startServiceBy(t, root, twoStepsScript, func(c *Config) { c.Shares = file }, real)
	}
	v := start()
	first := v.submit(twoSteps, texts, func(r *wire.SubmitWorkflowRequest) { r.User = "other" })
	v.await(first)
	if _, err := v.client.SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
		Workflow: []byte(twoSteps), Folder: texts, Group: "biology",
	}); connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), "physics") {
		t.Errorf("a foreign group: %v", err)
	}
	shares := func() (texts []string, answer *wire.ListSharesResponse) {
		t.Helper()
		answer, err := v.client.ListShares(t.Context(), &wire.ListSharesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range answer.GetShares() {
			text := fmt.Sprintf("%s %d", s.GetName(), s.GetWeight())
			if !s.GetUser() {
				text = fmt.Sprintf("%s/ %d", s.GetName(), s.GetWeight())
			}
			texts = append(texts, text)
		}
		return texts, answer
	}
	if got, answer := shares(); len(got) != 5 || answer.GetFile() != file || answer.GetProblem() != "" {
		t.Errorf("%v, %v", got, answer)
	}
	runs, err := v.client.ListRuns(t.Context(), &wire.ListRunsRequest{})
	if err != nil || runs.GetRuns()[0].GetUser() != me.Username || runs.GetRuns()[0].GetGroup() != "physics" {
		t.Error(runs, err)
	}
	v.retired(1)
	stores := func(s *wire.ShareSummary) bool { return s.GetName() == me.Username && s.GetStored() > 0 }
	if _, answer := shares(); !slices.ContainsFunc(answer.GetShares(), stores) {
		t.Errorf("what a run that is retired has stored does not count: %v", answer)
	}
	say("groups:\n  physics: {wieght: 3}\n")
	if _, answer := shares(); !strings.Contains(answer.GetProblem(), "shares.yaml:2:13") {
		t.Errorf("a problem of the file is not told: %q", answer.GetProblem())
	}
	say("limits: {licence: 2}\nhalf_life: 1h\nusers: {" + me.Username + ": {weight: 7, queued: 1}}\n")
	got, answer := shares()
	if !strings.Contains(strings.Join(got, " "), me.Username+" 7") || answer.GetHalfLife() != 3600 ||
		answer.GetLimits()[0].GetMost() != 2 || answer.GetProblem() != "" {
		t.Errorf("the changed file does not count: %v, %v", got, answer)
	}
	v.stop()
	v = start()
	defer v.stop()
	if runs, err = v.client.ListRuns(t.Context(), &wire.ListRunsRequest{}); err != nil ||
		runs.GetRuns()[0].GetGroup() != "physics" {
		t.Error(runs, err)
	}
	second := v.submit(twoSteps, texts, nil)
	v.await(second)
	if runs, err = v.client.ListRuns(t.Context(), &wire.ListRunsRequest{}); err != nil ||
		runs.GetRuns()[0].GetGroup() != "" {
		t.Error(runs, err)
	}
}

// Jobs of a run that was stopped wait for nothing, and do not count against a quota of jobs that wait.
func TestJobsOfStoppedRunsDoNotCountAgainstAQuota(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	file := filepath.Join(root, "shares.yaml")
	files.Write(t, file, "users: {"+me.Username+": {weight: 1, queued: 2}}\n")
	real := func(s store.Store) store.Store { return s }
	v := startServiceBy(t, root, twoStepsScript, func(c *Config) { c.Shares = file }, real)
	defer v.stop()
	text := strings.Replace(large["files"], `"{n}.in", as: "in/{n}"`, `"in/{n}.txt", as: "in/{n}"`, 1)
	inputs := files.Folder(t, threeTexts)
	run := v.submit(text, inputs, waits)
	for waiting := int64(0); waiting < 3; { // its jobs come after it was acknowledged
		changed := v.server.loop.Changes()
		runs, err := v.client.ListRuns(t.Context(), &wire.ListRunsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if waiting = runs.GetRuns()[0].GetJobs(); waiting < 3 {
			<-changed
		}
	}
	again := &wire.SubmitWorkflowRequest{Workflow: []byte(text), Folder: inputs, WaitAnyway: true}
	if _, err := v.client.SubmitWorkflow(t.Context(), again); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("with three jobs that wait: %v", err)
	}
	if _, err := v.client.Stop(t.Context(), &wire.StopRequest{Run: run}); err != nil {
		t.Fatal(err)
	}
	v.await(run)
	if _, err := v.client.SubmitWorkflow(t.Context(), again); err != nil {
		t.Errorf("when these were stopped: %v", err)
	}
}
