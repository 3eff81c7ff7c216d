package server

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fairway/internal/flow/workflow"
	"fairway/internal/pilot"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

func TestMain(m *testing.M) {
	if encoded, connect := os.Getenv(pilot.ConfigVariable), os.Getenv(connectVariable); encoded != "" || connect != "" {
		beAPilot(encoded, connect)
	}
	if root := os.Getenv(serverVariable); root != "" {
		beAServer(root)
	}
	if root := os.Getenv(besiegedVariable); root != "" {
		beBesieged(root)
	}
	goleak.VerifyTestMain(m)
}

// twoSteps makes upper-case copies of three files and joins them.
const twoSteps = `
workflow: demo
inputs:
  texts: {files: "in/{name}.txt", as: "in/{name}.txt"}
steps:
  upper:
    each: "in/{name}.txt"
    writes: "upper/{name}.txt"
    command: tr a-z A-Z
  join:
    merge: "upper/{name}.txt"
    writes: joined.txt
    command: cat $in
`

var threeTexts = map[string]string{"in/a.txt": "one ", "in/b.txt": "two ", "in/c.txt": "three "}

func twoStepsScript(a *wire.Assignment, read func(string) string) (map[string]string, int) {
	text := ""
	for _, in := range a.GetInputs() {
		text += read(in.GetFile().GetLfn())
	}
	if a.GetStep() == "upper" {
		text = strings.ToUpper(text)
	}
	return map[string]string{a.GetOutputs()[0].GetLfn(): text}, 0
}

type testRun struct {
	t      testing.TB
	folder string
	pilots *scripted
	config Config
}

func newRun(t testing.TB, root, work string, run script) *testRun {
	t.Helper()
	w, err := workflow.Parse("workflow.yaml", []byte(work))
	if err != nil {
		t.Fatal(err)
	}
	pilots := newScripted(t, run)
	s := sched.New(sched.Config{})
	t.Cleanup(s.Close)
	return &testRun{t: t, folder: root, pilots: pilots, config: Config{
		RunConfig: RunConfig{Workflow: w, Folder: root},
		System:    pilots.at, Sched: s, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
}

func (r *testRun) run() Outcome {
	r.t.Helper()
	s, err := Open(context.Background(), r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	outcome, err := s.Run(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return outcome
}

func (r *testRun) mustSucceed() Outcome {
	r.t.Helper()
	outcome := r.run()
	if !outcome.Succeeded {
		r.t.Fatalf("the run did not succeed: %+v", outcome)
	}
	return outcome
}

func (r *testRun) result(name string) string {
	r.t.Helper()
	return files.Read(r.t, filepath.Join(r.folder, folder.ResultsFolder, name))
}

func TestRunPublishesResults(t *testing.T) {
	r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	r.mustSucceed()
	if got := r.result("joined.txt"); got != "ONE TWO THREE " {
		t.Fatalf("got %q", got)
	}
	if r.pilots.total() != 4 {
		t.Fatalf("%d executions, want 4", r.pilots.total())
	}
}

func TestSecondRunHasNothingToDo(t *testing.T) {
	root := files.Folder(t, threeTexts)
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	again := newRun(t, root, twoSteps, twoStepsScript)
	again.mustSucceed()
	if again.pilots.total() != 0 {
		t.Fatalf("%d executions, want none", again.pilots.total())
	}
}

// A run may end before anybody has come to watch it.
func TestHowARunEndedIsToldToWhoDidNotWatch(t *testing.T) {
	root := files.Folder(t, threeTexts)
	for range 2 {
		s, err := Open(t.Context(), newRun(t, root, twoSteps, twoStepsScript).config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		report, err := s.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done := int64(0)
		for _, step := range report.GetSteps() {
			done += step.GetDone()
		}
		if report.GetWorkflow() != "demo" || done != 4 || !report.GetEnded() || !report.GetSucceeded() {
			t.Fatalf("%v, want all 4 jobs of demo done", report)
		}
	}
}

// The summary of a server counts its own attempts, and what it removed. When it has ended, the run
// has the attempts and the removed files of all its servers.
func TestSummariesAreOfTheirServers(t *testing.T) {
	const threeSteps = `
workflow: demo
storage: temporary
inputs:
  texts: {files: "in/{name}.txt", as: "in/{name}.txt"}
steps:
  upper: {each: "in/{name}.txt", writes: "upper/{name}.txt", command: tr a-z A-Z}
  again: {each: "upper/{name}.txt", writes: "again/{name}.txt", command: cat}
  join: {merge: "again/{name}.txt", writes: joined.txt, retry: {attempts: 1}, command: cat}
`
	root, failing := files.Folder(t, threeTexts), true
	for _, want := range []struct{ attempts, removed, allAttempts, allRemoved int64 }{
		{7, 3, 7, 3}, {1, 3, 8, 6}, {0, 0, 8, 6},
	} {
		s, err := Open(t.Context(),
			newRun(t, root, threeSteps, func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
				if failing && a.GetStep() == "join" {
					return nil, 1
				}
				return twoStepsScript(a, read)
			}).config)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := s.Run(t.Context())
		if err != nil || outcome.Succeeded == failing {
			t.Fatal(outcome, err)
		}
		report, err := s.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rested, err := api.OpenResting(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		all, err := api.Progress(t.Context(), rested)
		if err != nil {
			t.Fatal(err)
		}
		own, sum := report.GetSummary(), all.GetSummary()
		if own.GetAttempts() != want.attempts || own.GetRemoved() != want.removed ||
			sum.GetAttempts() != want.allAttempts || sum.GetRemoved() != want.allRemoved {
			t.Errorf("the server counts %v, the run %v, want %+v", own, sum, want)
		}
		if spent := own.GetWaitingSeconds() + own.GetStagingSeconds() + own.GetComputingSeconds(); want.attempts == 0 &&
			spent != 0 {
			t.Errorf("the server, which ran nothing, counts %v s", spent)
		}
		if own.GetWallSeconds() > sum.GetWallSeconds() || !failing && own.GetWallSeconds() == sum.GetWallSeconds() {
			t.Errorf("the server took %v s, all of the run %v s", own.GetWallSeconds(), sum.GetWallSeconds())
		}
		failing = false
	}
}

func TestChangedInputRunsAgainWhatDependsOnIt(t *testing.T) {
	root := files.Folder(t, threeTexts)
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	files.Write(t, filepath.Join(root, "in/b.txt"), "zwei ")
	again := newRun(t, root, twoSteps, twoStepsScript)
	again.mustSucceed()
	if got := again.result("joined.txt"); got != "ONE ZWEI THREE " {
		t.Fatalf("got %q", got)
	}
	if again.pilots.total() != 2 {
		t.Fatalf("executions: %v, want those of b and of join", again.pilots.executed)
	}
}

func TestDryRunTellsWhatWouldRun(t *testing.T) {
	root := files.Folder(t, threeTexts)
	r := newRun(t, root, twoSteps, twoStepsScript)
	wantPlan(t, r, "new", "upper/a", "upper/b", "upper/c", "join")
	if _, err := os.Stat(filepath.Join(root, folder.StateFolder)); err == nil {
		t.Fatal("a dry run made the state folder")
	}
	r.mustSucceed()
	wantPlan(t, r, "done")
	files.Write(t, filepath.Join(root, "in/b.txt"), "zwei ")
	wantPlan(t, r, "again", "upper/b", "join")
	wantPlan(t, r, "again", "upper/b", "join")
}

// A job whose result a pilot has kept on disk will not run: the next run is told the
// result.
func TestDryRunKnowsResultsThatPilotsKept(t *testing.T) {
	r := newRun(t, files.Folder(t, threeTexts), twoSteps,
		func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
			files, _ := twoStepsScript(a, read)
			if a.GetStep() == "join" {
				return files, 1
			}
			return files, 0
		})
	if outcome := r.run(); outcome.Succeeded {
		t.Fatal("the run succeeded")
	}
	wantPlan(t, r, "on", "join")
	r.config.Spooled = func(sandboxes string) []*wire.AttemptRef {
		if filepath.Base(filepath.Dir(sandboxes)) != "sandbox" {
			t.Errorf("asked for the spool in %s", sandboxes)
		}
		return []*wire.AttemptRef{{Run: 1, Job: 1}, {Run: 1, Job: 4}, {Run: 2, Job: 5}}
	}
	wantPlan(t, r, "on")
}

const partsCopied = `
workflow: parts
steps:
  cut:    {writes: "parts/{part}.txt", command: cut}
  copies: {each: "parts/{part}.txt", writes: "copies/{part}.txt", command: cat $in}
`

// While further jobs may be made, nobody knows which results none of them makes.
func TestDryRunNamesNoRemovalThatIsNotCertain(t *testing.T) {
	open := strings.Replace(twoSteps, `{files: "in/{name}.txt"`, `{watch: "in/{name}.txt", close: file closed`, 1)
	for name, c := range map[string]struct{ workflow, changed, note string }{
		"an open input":          {open, open + "# x\n", "when the inputs are closed"},
		"another name":           {open, strings.Replace(open, "joined.txt", "other.txt", 1), "when the inputs are closed"},
		"outputs with any names": {partsCopied, strings.Replace(partsCopied, "command: cut", "command: cut it", 1), "when all jobs are known"},
	} {
		t.Run(name, func(t *testing.T) {
			root := files.Folder(t, threeTexts)
			files.Write(t, filepath.Join(root, "closed"), "")
			perform := func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
				if a.GetStep() == "cut" {
					return map[string]string{"parts/a.txt": "a"}, 0
				}
				return twoStepsScript(a, read)
			}
			newRun(t, root, c.workflow, perform).mustSucceed()
			plan, err := DryRun(t.Context(), newRun(t, root, c.changed, perform).config)
			if err != nil || !plan.More || len(plan.Removes) != 0 || !strings.Contains(strings.Join(plan.Notes, "\n"), c.note) {
				t.Errorf("%+v, %v", plan, err)
			}
		})
	}
}

func wantPlan(t *testing.T, r *testRun, begins string, runs ...string) {
	t.Helper()
	plan, err := DryRun(context.Background(), r.config)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, job := range plan.Jobs {
		if job.Runs {
			got = append(got, job.Name)
		}
	}
	if plan.Begins != begins || !slices.Equal(got, runs) || plan.More {
		t.Fatalf("got %+v, want it to begin %s and run %v", plan, begins, runs)
	}
}

// A server that is killed as it starts a pilot leaves no record of it. A run that
// ended without that pilot would leave it behind.
func TestPilotsThatNoRecordTellsOfAreEnded(t *testing.T) {
	r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	r.pilots.left = "earlier-7"
	r.mustSucceed()
	if r.pilots.left != "" {
		t.Errorf("the run ended without pilot %s", r.pilots.left)
	}
}

// The first words of a pilot may arrive after its batch system has told its end: both
// come by ways of their own. Its jobs must not wait for its lease, of an hour here.
func TestAPilotThatIsHeardAfterItsEndHoldsNoJob(t *testing.T) {
	r := newRun(t, files.Folder(t, threeTexts), twoSteps, twoStepsScript)
	r.pilots.unheard = "p1"
	s, err := Open(t.Context(), r.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if outcome, err := s.Run(ctx); err != nil || !outcome.Succeeded {
		t.Fatalf("%+v %v", outcome, err)
	}
	if r.pilots.launched < 2 {
		t.Error("no other pilot was started")
	}
}
