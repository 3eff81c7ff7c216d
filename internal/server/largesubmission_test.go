package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/flow"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

// betweenPieces calls between when the second transaction with jobs is durable: the first one may have begun their
// run. It notes the transactions.
type betweenPieces struct {
	store.Store
	between func()
	mu      sync.Mutex        // guards what follows: the server goes on when all jobs have ended
	most    int               // records of a transaction
	order   []taskqueue.RunID // of the jobs of each
}

func (s *betweenPieces) Apply(ctx context.Context, all []taskqueue.Record) error {
	err := s.Store.Apply(ctx, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = max(s.most, len(all))
	for _, r := range all {
		if r.Table != records.TableJob || r.Body == nil {
			continue
		}
		if s.order = append(s.order, r.Run); len(s.order) == 2 {
			s.between()
		}
		break
	}
	return err
}

// largeInput are so many that they are taken up in pieces.
const (
	largeInput = 3 * fedTogether
	largeEvent = 3 * flow.PieceJobs // jobs of one event
	largePart  = 5                  // bytes, of a file that is split
)

func jobsOf(kind string) int64 {
	if kind == "files" {
		return largeInput
	}
	return largeEvent
}

func inputsOfLarge(t *testing.T) (inputs string) {
	inputs = t.TempDir()
	first := filepath.Join(inputs, "0.in")
	files.Write(t, first, "x")
	for i := 1; i < largeInput; i++ {
		if err := os.Link(first, filepath.Join(inputs, fmt.Sprint(i, ".in"))); err != nil {
			t.Fatal(err)
		}
	}
	return inputs
}

// large are workflows of many jobs: of the files of an input, and of one event each.
var large = map[string]string{
	"files": `
workflow: many
inputs: {in: {files: "{n}.in", as: "in/{n}"}}
steps:
  one: {each: "in/{n}", writes: "out/{n}", command: none, needs: {cpus: 1000}}
`,
	"times": fmt.Sprintf(`
workflow: many
steps:
  one: {times: %d, writes: "out/{number}", command: none, needs: {cpus: 1000}}
`, largeEvent),
	"split": fmt.Sprintf(`
workflow: many
inputs: {in: {files: "{n}.in", as: "in/{n}"}}
steps:
  one:
    each: "in/{n}"
    split: {records: 1, of: bytes=%d}
    writes: "out/{n}/{chunk}"
    command: none
    needs: {cpus: 1000}
`, largePart),
	"product": `
workflow: many
inputs: {a: {files: "a{n}.in", as: "a/{n}"}, b: {files: "b{m}.in", as: "b/{m}"}}
steps:
  one: {each: ["a/{n}", "b/{m}"], writes: "out/{n}/{m}", command: none, needs: {cpus: 1000}}
`,
}

// inputsOf are files of which such a workflow makes jobsOf jobs.
func inputsOf(t *testing.T, kind string) (inputs string) {
	inputs = t.TempDir()
	switch kind {
	case "files":
		return inputsOfLarge(t)
	case "split":
		files.Write(t, filepath.Join(inputs, "0.in"), strings.Repeat("x", largeEvent*largePart))
	case "product":
		for i := range largeEvent / 3 {
			files.Write(t, filepath.Join(inputs, fmt.Sprint("a", i, ".in")), "")
		}
		for i := range 3 {
			files.Write(t, filepath.Join(inputs, fmt.Sprint("b", i, ".in")), "")
		}
	}
	return inputs
}

// waits submits for pilots that will not come.
func waits(r *wire.SubmitWorkflowRequest) { r.WaitAnyway = true }

// While the jobs of one person's submission are being made, those of another are, and questions are answered.
func TestALargeSubmissionKeepsNobodyWaiting(t *testing.T) {
	for kind := range large {
		t.Run(kind, func(t *testing.T) { keepsNobodyWaiting(t, large[kind], inputsOf(t, kind)) })
	}
}

func keepsNobodyWaiting(t *testing.T, text, inputs string) {
	small := files.Folder(t, threeTexts)
	var v *service
	other := make(chan uint32, 1)
	between := &betweenPieces{between: func() {
		for end := time.Now().Add(time.Minute); len(v.runs()) == 0 && time.Now().Before(end); {
			_ = sched.Default().Sleep(t.Context(), time.Millisecond) // until who submitted has been told
		}
		if _, err := v.client.ListJobs(t.Context(), &wire.ListJobsRequest{Run: 1, Limit: 1}); err != nil {
			t.Error(err)
		}
		if _, err := v.client.ShowJob(t.Context(), &wire.ShowJobRequest{Run: 1, Job: "1"}); err != nil {
			t.Error(err)
		}
		if runs := v.runs(); len(runs) != 1 || !strings.HasPrefix(runs[0], "1 many underway") {
			t.Errorf("runs are %q", runs)
		}
		go func() { other <- v.submit(twoSteps, small, nil) }()
		for end := time.Now().Add(time.Minute); ; { // until the loop has been handed it
			_ = sched.Default().Sleep(t.Context(), time.Millisecond)
			v.server.runs.submitting.Lock()
			last := v.server.runs.last
			v.server.runs.submitting.Unlock()
			if last == 2 || time.Now().After(end) {
				return
			}
		}
	}}
	v = startServiceOn(t, t.TempDir(), twoStepsScript, func(s store.Store) store.Store {
		between.Store = s
		return between
	})
	defer v.stop()
	v.submit(text, inputs, waits)
	if run := <-other; run != 2 {
		t.Errorf("the other run is %d", run)
	}
	v.await(2)
	if _, err := v.client.Stop(t.Context(), &wire.StopRequest{Run: 1}); err != nil {
		t.Fatal(err)
	}
	v.await(1)
	between.mu.Lock()
	defer between.mu.Unlock()
	if at := between.order; len(at) < 4 || at[0] != 1 || at[1] != 1 {
		t.Errorf("jobs of the runs became durable in the order %v", at)
	}
	if between.most > 5*fedTogether {
		t.Errorf("%d records were one transaction", between.most)
	}
}

// A server that ends when some of the jobs were made goes on with the others.
func TestALargeSubmissionGoesOnAfterARestart(t *testing.T) {
	for kind := range large {
		t.Run(kind, func(t *testing.T) { goesOnAfterARestart(t, large[kind], inputsOf(t, kind), jobsOf(kind)) })
	}
}

func goesOnAfterARestart(t *testing.T, text, inputs string, want int64) {
	root := t.TempDir()
	var v *service
	killed := make(chan struct{})
	v = startServiceOn(t, root, twoStepsScript, func(s store.Store) store.Store {
		return &betweenPieces{Store: s, between: func() {
			go func() {
				v.server.Stop(false)
				close(killed)
			}()
			<-killed
		}}
	})
	v.submit(text, inputs, waits)
	<-killed
	v.stop()
	v = startService(t, root, twoStepsScript)
	defer v.stop()
	for {
		answer, err := v.client.ListRuns(t.Context(), &wire.ListRunsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if jobs := answer.GetRuns()[0].GetJobs(); jobs == want {
			break
		} else if jobs > want {
			t.Fatalf("%d jobs", jobs)
		}
		<-v.server.loop.Changes()
	}
}

// Nothing is submitted for a caller that has gone while it waited for its turn.
func TestNothingIsSubmittedForACallerThatHasGone(t *testing.T) {
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	ctx, gone := context.WithCancel(t.Context())
	v.server.runs.submitting.Lock()
	answer := make(chan error, 1)
	w := &api.SubmittedWorkflow{File: "workflow.yaml", Text: []byte(twoSteps)}
	for path, text := range threeTexts {
		w.Uploads = append(w.Uploads, api.Upload{Path: path, Content: []byte(text)})
	}
	go func() {
		_, _, err := v.server.SubmitWorkflow(ctx, w)
		answer <- err
	}()
	for uploads := 0; uploads < len(threeTexts); _ = sched.Default().Sleep(ctx, time.Millisecond) {
		found, _ := filepath.Glob(filepath.Join(v.server.folders.State, folder.UploadsName, "*", "in", "*"))
		uploads = len(found)
	}
	gone()
	v.server.runs.submitting.Unlock()
	if err := <-answer; err == nil {
		t.Error("a call that was cancelled succeeded")
	}
	if next := v.submit(twoSteps, files.Folder(t, threeTexts), nil); next != 1 {
		t.Errorf("run %d", next)
	}
}
