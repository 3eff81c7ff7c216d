package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/dispatch"
	"fairway/internal/server/api"
	"fairway/internal/server/state"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/test/files"
)

// failingOnce is a store of which the first transaction fails that has a record of a run with a
// text. With durable it says so of one that has succeeded.
type failingOnce struct {
	store.Store
	text    string
	durable bool
	failed  atomic.Bool
}

func (f *failingOnce) Apply(ctx context.Context, records []taskqueue.Record) error {
	meant := slices.ContainsFunc(records, func(r taskqueue.Record) bool {
		return r.Table == state.RunTable && bytes.Contains(r.Body, []byte(f.text))
	})
	if !meant || f.failed.Swap(true) {
		return f.Store.Apply(ctx, records)
	}
	if f.durable {
		if err := f.Store.Apply(ctx, records); err != nil {
			return err
		}
	}
	return errDisk
}

// A submission that the store has refused is not there, and can be repeated. One that is durable
// although the store has failed is one run.
func TestStoreFailsAtASubmission(t *testing.T) {
	for _, durable := range []bool{false, true} {
		texts := files.Folder(t, threeTexts)
		v := startServiceOn(t, t.TempDir(), twoStepsScript, func(s store.Store) store.Store {
			return &failingOnce{Store: s, text: "nightly", durable: durable}
		})
		request := &wire.SubmitWorkflowRequest{Workflow: []byte(twoSteps), Folder: texts, Key: "nightly"}
		if answer, err := v.client.SubmitWorkflow(t.Context(), request); durable && (err != nil || answer.GetRun() != 1) ||
			!durable && connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("durable %v: %v, %v", durable, answer, err)
		}
		run := v.submit(twoSteps, texts, func(r *wire.SubmitWorkflowRequest) { r.Key = "nightly" })
		if end := v.await(run); run != 1 || !end.GetSucceeded() {
			t.Errorf("durable %v: run %d: %v", durable, run, end)
		}
		if got := v.result(run, "joined.txt"); got != "ONE TWO THREE " {
			t.Errorf("durable %v: got %q", durable, got)
		}
		v.retired(1)
		v.stop()
	}
}

// A run whose retirement the store has refused is retired at the next try. Who asks meanwhile reads
// nothing that the loop changes.
func TestStoreFailsAtARetirement(t *testing.T) {
	v := startServiceOn(t, t.TempDir(), twoStepsScript, func(s store.Store) store.Store {
		return &failingOnce{Store: s, text: `"archived":true`}
	})
	defer v.stop()
	run := v.submit(twoSteps, files.Folder(t, threeTexts), nil)
	asking, stop := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	if r := v.server.runs.get(taskqueue.RunID(run)); r != nil {
		for range 4 {
			asked.Go(func() {
				for asking.Err() == nil {
					_, _ = api.Progress(asking, r)
				}
			})
		}
	}
	if end := v.await(run); !end.GetSucceeded() {
		t.Error(end)
	}
	stop()
	asked.Wait()
	if v.server.runs.get(taskqueue.RunID(run)) != nil {
		t.Fatal("the run is not retired")
	}
	v.retired(1)
}

// How a run has ended is found out by cores that know it: not right after they were loaded again, when
// questions are answered.
func TestTheEndOfARunWaitsForItsCores(t *testing.T) {
	root := t.TempDir()
	server, err := Open(t.Context(), Config{
		RunConfig:     RunConfig{Folder: root},
		ServiceConfig: ServiceConfig{Lasting: true},
		System:        newScripted(t, twoStepsScript).at, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	// Nothing can be archived here, so the run stays when it has ended.
	files.Write(t, filepath.Dir(server.archiveOf(1)), "no folder")
	var armed atomic.Bool
	broken := &failing{Store: server.records, fails: func(int64) bool { return armed.Swap(false) }}
	server.records, server.loop.Store = broken, broken
	looks, goesOn, look := make(chan struct{}), make(chan struct{}), server.loop.Look
	var held atomic.Bool
	server.loop.Look = func(core *dispatch.Core) func(context.Context) {
		survey := look(core)
		return func(ctx context.Context) {
			if survey(ctx); held.Swap(false) {
				looks <- struct{}{}
				<-goesOn
			}
		}
	}
	v := running(t, root, server)
	defer v.stop()
	texts := files.Folder(t, threeTexts)
	run := v.submit(twoSteps, texts, nil)
	if end := v.await(run); !end.GetSucceeded() {
		t.Fatal(end)
	}
	r := server.runs.get(taskqueue.RunID(run))
	r.concluded.Store(nil)
	held.Store(true)
	armed.Store(true)
	go func() { // the store refuses it
		request := &wire.SubmitWorkflowRequest{Workflow: []byte(twoSteps), Folder: texts}
		_, _ = v.client.SubmitWorkflow(context.Background(), request)
	}()
	<-looks
	ended := make(chan error, 1)
	go func() { ended <- server.endRun(context.Background(), r) }()
	for range 100_000 { // time enough for whoever does not wait
		if err := r.inbox.Query(t.Context(), func(*state.Cores) {}); err != nil {
			t.Fatal(err)
		}
	}
	if end := r.concluded.Load(); end != nil {
		t.Errorf("while the cores do not know their inputs, the end is told: %+v", end)
	}
	close(goesOn)
	if err := <-ended; r.concluded.Load() == nil || !r.concluded.Load().Succeeded {
		t.Errorf("%+v, %v", r.concluded.Load(), err)
	}
}

// The number and the key of a run that was removed: the number is given to no other run, also not by
// a later server, and the key is free.
func TestNumbersAndKeysOfRemovedRuns(t *testing.T) {
	texts, root := files.Folder(t, threeTexts), t.TempDir()
	keyed := func(r *wire.SubmitWorkflowRequest) { r.Key = "nightly" }
	v := startService(t, root, twoStepsScript)
	for want := uint32(1); want <= 3; want++ {
		if run := v.submit(twoSteps, texts, keyed); run != want {
			t.Fatalf("run %d, and not %d", run, want)
		}
		v.await(want)
		if _, err := v.client.RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: []uint32{want}}); err != nil {
			t.Fatal(err)
		}
		if want == 2 {
			v.stop()
			v = startService(t, root, twoStepsScript)
		}
	}
	v.stop()
}

// A run that cannot be read at the moment is not one that is gone: who follows it asks again.
func TestAnArchiveThatCannotBeOpenedIsNotGone(t *testing.T) {
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	v.await(v.submit(twoSteps, files.Folder(t, threeTexts), nil))
	v.retired(1)
	files.Write(t, v.server.archiveOf(1), strings.Repeat("no database ", 1000))
	for run, want := range map[uint32]connect.Code{1: connect.CodeUnavailable, 2: connect.CodeNotFound} {
		if _, _, err := v.server.Find(t.Context(), run); connect.CodeOf(err) != want {
			t.Errorf("run %d: %v", run, err)
		}
	}
}

// A removal that a crash has cut short is completed when it is asked for again.
func TestRemovalIsCompleted(t *testing.T) {
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	run := v.submit(twoSteps, files.Folder(t, threeTexts), nil)
	v.await(run)
	if err := os.Remove(v.server.archiveOf(taskqueue.RunID(run))); err != nil {
		t.Fatal(err)
	}
	if _, err := v.client.RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: []uint32{run}}); err != nil {
		t.Fatal(err)
	}
	if got := v.runs(); len(got) != 0 {
		t.Error(got)
	}
}

// A run whose result could not be published has not succeeded before it is, also when it is told to
// go on.
func TestResultsThatCouldNotBePublished(t *testing.T) {
	t.Parallel() // it waits for PublishTries
	texts, place := files.Folder(t, threeTexts), filepath.Join(t.TempDir(), "place")
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	run := v.submit("workflow: demo\nopen: true\n", texts, func(r *wire.SubmitWorkflowRequest) { r.Results = place })
	files.Write(t, filepath.Join(place, "out.txt"), "of somebody else")
	_, err := v.client.Submit(t.Context(), &wire.SubmitRequest{Run: run, Jobs: []*wire.SubmittedJob{{
		Name: "job", Step: "upper", Payload: &wire.Payload{Argv: []string{"true"}},
		Reads: []*wire.SubmittedInput{{Lfn: "in", File: "in/a.txt"}}, Writes: []*wire.SubmittedOutput{{Lfn: "out.txt"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.client.CloseInput(t.Context(), &wire.CloseInputRequest{Run: run}); err != nil {
		t.Fatal(err)
	}
	if end := v.await(run); end.GetSucceeded() || len(end.GetProblems()) == 0 {
		t.Fatal(end)
	}
	again := func() *wire.ProgressReport {
		changed, err := v.client.Retry(t.Context(), &wire.RetryRequest{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		const want = "[the run goes on results that could not be published are published once more: out.txt]"
		if got := fmt.Sprint(changed.GetNotes()); len(changed.GetJobs()) != 0 || got != want {
			t.Errorf("it is said that retry has done %v, %s", changed.GetJobs(), got)
		}
		return v.await(run)
	}
	if end := again(); end.GetSucceeded() || len(end.GetProblems()) == 0 {
		t.Errorf("it has succeeded without its result: %v", end)
	}
	if err := os.Remove(filepath.Join(place, "out.txt")); err != nil {
		t.Fatal(err)
	}
	if end := again(); !end.GetSucceeded() {
		t.Error(end)
	}
	if _, err := os.Stat(filepath.Join(place, "out.txt")); err != nil {
		t.Error(err)
	}
}
