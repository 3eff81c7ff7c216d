package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/test/files"
)

// failing is a store of which some transactions fail.
type failing struct {
	store.Store
	count atomic.Int64
	fails func(n int64) bool
}

var errDisk = errors.New("the disk is on fire")

func (f *failing) Apply(ctx context.Context, records []taskqueue.Record) error {
	if f.fails(f.count.Add(1)) {
		return errDisk
	}
	return f.Store.Apply(ctx, records)
}

func (r *testRun) runOn(fails func(int64) bool) (Outcome, error) {
	r.t.Helper()
	s, err := Open(context.Background(), r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	broken := &failing{Store: s.records, fails: fails}
	s.records, s.runs.own.opened.store, s.loop.Store = broken, broken, broken
	return s.Run(context.Background())
}

// TestStoreFailsNowAndThen: the cores are loaded again, pilots connect anew, and
// the results are the same.
func TestStoreFailsNowAndThen(t *testing.T) {
	r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	outcome, err := r.runOn(func(n int64) bool { return n > 1 && n%3 == 0 })
	if err != nil || !outcome.Succeeded {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if got := r.result("joined.txt"); got != "ONE TWO THREE " {
		t.Fatalf("got %q", got)
	}
}

func failB(a *wire.Assignment, read func(string) string) (map[string]string, int) {
	if a.GetName() == "upper/b" {
		return nil, 3
	}
	return twoStepsScript(a, read)
}

const oneAttempt = `
    retry: {attempts: 1}
    command: tr`

func TestFailedJobIsTriedAgainByTheNextRun(t *testing.T) {
	root := files.Folder(t, threeTexts)
	workflow := strings.Replace(twoSteps, "\n    command: tr", oneAttempt, 1)
	r := newRun(t, root, workflow, failB)
	r.config.KeepGoing = true
	outcome := r.run()
	if outcome.Succeeded || outcome.Stopped || len(outcome.Problems) != 1 ||
		!strings.Contains(outcome.Problems[0], "upper/b") {
		t.Fatalf("got %+v", outcome)
	}
	again := newRun(t, root, workflow, twoStepsScript)
	again.mustSucceed()
	if again.pilots.executed["upper/a"] != 0 || again.pilots.executed["upper/b"] != 1 ||
		again.pilots.executed["join"] != 1 {
		t.Fatalf("executions: %v", again.pilots.executed)
	}
}

func TestStopKeepsTheRunResumable(t *testing.T) {
	root := files.Folder(t, threeTexts)
	var s *Server
	r := newRun(t, root, twoSteps, func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		if a.GetName() == "upper/a" {
			go s.Stop(true)
		}
		return twoStepsScript(a, read)
	})
	var err error
	if s, err = Open(context.Background(), r.config); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
}

// TestStoppedPilotHoldsNothingUp: a pilot that was stopped (SIGSTOP) with work in
// its hands is given up when its lease is over, the others do that work, and
// the end of the run does not wait for it for ever.
func TestStoppedPilotHoldsNothingUp(t *testing.T) {
	r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	r.pilots.stopped = map[string]bool{"p1": true}
	r.config.Site.MaxPilots = 2
	r.config.LeaveTime = 10 * time.Millisecond
	r.config.Dispatch.Hold, r.config.Dispatch.PilotLease = 50*time.Millisecond, 50*time.Millisecond
	r.mustSucceed()
	if got := r.result("joined.txt"); got != "ONE TWO THREE " {
		t.Fatalf("got %q", got)
	}
}

// heard calls a function at each message of a log.
type heard struct {
	slog.Handler
	call func(message string)
}

func (h heard) Handle(ctx context.Context, r slog.Record) error {
	h.call(r.Message)
	return h.Handler.Handle(ctx, r)
}

// TestEndWaitsForPublications: pilots have long left, and a result is still to be
// published.
func TestEndWaitsForPublications(t *testing.T) {
	root := files.Folder(t, threeTexts)
	inTheWay := filepath.Join(root, folder.ResultsFolder)
	files.Write(t, inTheWay, "")
	r := newRun(t, root, twoSteps, twoStepsScript)
	r.config.LeaveTime = time.Millisecond
	r.config.Log = slog.New(heard{r.config.Log.Handler(), func(message string) {
		if message == "a result could not be published" {
			_ = os.Remove(inTheWay)
		}
	}})
	r.mustSucceed()
	if got := r.result("joined.txt"); got != "ONE TWO THREE " {
		t.Fatalf("got %q", got)
	}
}

// TestPilotEndsBeforeItIsKnown: the end of a pilot that is killed as it starts may
// be heard before its launch is. It must not count as one that will come.
func TestPilotEndsBeforeItIsKnown(t *testing.T) {
	r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	r.config.Site.MaxPilots = 2
	r.pilots.dies = "p1"
	s, err := Open(context.Background(), r.config)
	if err != nil {
		t.Fatal(err)
	}
	if outcome, err := s.Run(context.Background()); err != nil || !outcome.Succeeded {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if known, live := s.loop.Dispatch.Launches(), s.pilots.Launches(); len(known)+len(live) > 0 {
		t.Fatalf("pilots that are waited for: %v in the TaskQueue, %v in the server", known, live)
	}
}

// TestEndWithAStoppedPilot: a person who ends the run need not wait for a pilot
// that hears nothing, and what it had can be gone on with.
func TestEndWithAStoppedPilot(t *testing.T) {
	root := files.Folder(t, threeTexts)
	for _, drain := range []bool{true, false} {
		r := newRun(t, root, twoSteps, twoStepsScript)
		r.pilots.stopped = map[string]bool{"p1": true}
		r.config.LeaveTime = 10 * time.Millisecond
		r.config.Dispatch.Hold, r.config.Dispatch.PilotLease = 50*time.Millisecond, 50*time.Millisecond
		s, err := Open(context.Background(), r.config)
		if err != nil {
			t.Fatal(err)
		}
		r.pilots.onStop = func() { s.Stop(drain) }
		if outcome, err := s.Run(context.Background()); err != nil || !outcome.Stopped || len(outcome.Problems) > 0 {
			t.Fatalf("%+v, %v", outcome, err)
		} else if !slices.ContainsFunc(outcome.Notes, func(note string) bool {
			return strings.HasPrefix(note, "the end waits for pilots that have not left: ")
		}) {
			t.Errorf("it does not say what it waits for: %q", outcome.Notes)
		}
	}
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
}

func TestConnectShowsAFinishedRun(t *testing.T) {
	root := files.Folder(t, threeTexts)
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	c, err := api.Connect(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	jobs, err := c.ListJobs(context.Background(), &wire.ListJobsRequest{States: []string{"done"}, Limit: 3})
	if err != nil || len(jobs.GetJobs()) != 3 || !jobs.GetMore() || jobs.GetTotal() != 4 {
		t.Fatalf("got %v, %v", jobs, err)
	}
	detail, err := c.ShowJob(context.Background(), &wire.ShowJobRequest{Job: "join"})
	if err != nil || len(detail.GetReads()) != 3 || len(detail.GetAttempts()) != 1 ||
		!detail.GetWrites()[0].GetPublished() {
		t.Fatalf("got %v, %v", detail, err)
	}
	if _, err := c.Stop(context.Background(), &wire.StopRequest{}); err == nil || c.Live {
		t.Fatalf("a run that is over could be stopped: %v", err)
	}
	same, err := c.Cancel(context.Background(), &wire.CancelRequest{Jobs: []string{"join"}})
	if err != nil || same.GetJobs()[0].GetState() != "done" {
		t.Fatalf("a job that is done could be cancelled: %v, %v", same, err)
	}
	stream, err := c.Progress(context.Background(), &wire.ProgressRequest{Follow: true})
	if err != nil || !stream.Receive() {
		t.Fatalf("no report: %v", err)
	}
	if report := stream.Msg(); !report.GetEnded() || !report.GetSucceeded() ||
		report.GetSummary().GetPublishedCount() != 1 {
		t.Fatalf("got %v", report)
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
}

const watched = `
workflow: watched
inputs:
  texts: {watch: "in/{name}.txt", as: "in/{name}.txt", close: file closed}
steps:
  upper:
    each: "in/{name}.txt"
    writes: "upper/{name}.txt"
    command: tr a-z A-Z
`

func TestWatchedFolderFeedsUntilItIsClosed(t *testing.T) {
	root := files.Folder(t, threeTexts)
	r := newRun(t, root, watched, func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		switch a.GetName() {
		case "upper/c":
			files.Write(t, filepath.Join(root, "in/d.txt"), "four") // after the run began
		case "upper/d":
			files.Write(t, filepath.Join(root, "closed"), "")
		}
		return map[string]string{a.GetOutputs()[0].GetLfn(): strings.ToUpper(read(a.GetInputs()[0].GetFile().GetLfn()))}, 0
	})
	r.mustSucceed()
	if got := r.result("upper/d.txt"); got != "FOUR" || r.pilots.total() != 4 {
		t.Fatalf("got %q, %v", got, r.pilots.executed)
	}
}
