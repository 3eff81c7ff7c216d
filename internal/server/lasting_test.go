package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/dispatch/records"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/server/state"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

// service is a lasting server that a test starts and ends, with scripted pilots.
type service struct {
	t      *testing.T
	root   string
	server *Server
	client *listen.Connection
	ended  chan error
}

func startService(t *testing.T, root string, run script) *service {
	t.Helper()
	return startServiceOn(t, root, run, func(s store.Store) store.Store { return s })
}

// startServiceAs is startService with another Config.
func startServiceAs(t *testing.T, root string, run script, change func(*Config)) *service {
	t.Helper()
	return startServiceBy(t, root, run, change, func(s store.Store) store.Store { return s })
}

// startServiceOn is startService with a store that the test makes of the real one.
func startServiceOn(t *testing.T, root string, run script, of func(store.Store) store.Store) *service {
	t.Helper()
	return startServiceBy(t, root, run, func(*Config) {}, of)
}

// startServiceBy is startServiceOn with settings.
func startServiceBy(
	t *testing.T, root string, run script, change func(*Config), of func(store.Store) store.Store,
) *service {
	t.Helper()
	s := sched.New(sched.Config{})
	t.Cleanup(s.Close)
	config := Config{
		RunConfig:     RunConfig{Folder: root},
		ServiceConfig: ServiceConfig{Lasting: true},
		System:        newScripted(t, run).at, Sched: s, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	change(&config)
	server, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	server.records = of(server.records)
	server.loop.Store = server.records
	return running(t, root, server)
}

// startServiceWith is startService with a configuration of its own.
func startServiceWith(t *testing.T, root string, config Config) *service {
	t.Helper()
	config.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	server, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return running(t, root, server)
}

// running has a lasting server run, and connects to it.
func running(t *testing.T, root string, server *Server) *service {
	t.Helper()
	v := &service{t: t, root: root, server: server, ended: make(chan error, 1)}
	go func() {
		_, err := server.Run(context.Background())
		v.ended <- err
	}()
	var err error
	if v.client, err = api.Connect(t.Context(), root); err != nil || !v.client.Live {
		t.Fatal(v.client, err)
	}
	return v
}

func (v *service) stop() {
	v.t.Helper()
	v.client.Close()
	v.server.Stop(true)
	if err := <-v.ended; err != nil {
		v.t.Error(err)
	}
}

// submit submits a workflow with the inputs of a folder.
func (v *service) submit(text, in string, change func(*wire.SubmitWorkflowRequest)) uint32 {
	v.t.Helper()
	r := &wire.SubmitWorkflowRequest{Workflow: []byte(text), Folder: in}
	if change != nil {
		change(r)
	}
	answer, err := v.client.SubmitWorkflow(v.t.Context(), r)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.GetRun()
}

// await is the last report of a run.
func (v *service) await(run uint32) *wire.ProgressReport {
	v.t.Helper()
	stream, err := v.client.Progress(v.t.Context(), &wire.ProgressRequest{Run: run, Follow: true})
	if err != nil {
		v.t.Fatal(err)
	}
	defer stream.Close()
	var last *wire.ProgressReport
	for stream.Receive() {
		last = stream.Msg()
	}
	if stream.Err() != nil || !last.GetEnded() {
		v.t.Fatalf("run %d: %v, %v", run, last, stream.Err())
	}
	return last
}

func (v *service) runs() (text []string) {
	v.t.Helper()
	answer, err := v.client.ListRuns(v.t.Context(), &wire.ListRunsRequest{})
	if err != nil {
		v.t.Fatal(err)
	}
	for _, run := range answer.GetRuns() {
		text = append(text, fmt.Sprintf("%d %s %s %d/%d", run.GetRun(), run.GetWorkflow(), run.GetState(), run.GetDone(),
			run.GetJobs()))
	}
	return text
}

func (v *service) result(run uint32, name string) string {
	v.t.Helper()
	text, err := os.ReadFile(filepath.Join(v.root, folder.ResultsFolder, fmt.Sprint(run), name))
	if err != nil {
		v.t.Error(err)
	}
	return string(text)
}

// Workflows run side by side, each with its results. What a run leaves is a result for the next one,
// and a run that has succeeded is in the memory of the server no more.
func TestServerTakesWorkflows(t *testing.T) {
	texts := files.Folder(t, threeTexts)
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	first := v.submit(twoSteps, texts, nil)
	one := files.Folder(t, map[string]string{"in/x.txt": "x "})
	other := v.submit(strings.Replace(twoSteps, "demo", "other", 1), one, nil)
	for run, want := range map[uint32]string{first: "ONE TWO THREE ", other: "X "} {
		if end := v.await(run); !end.GetSucceeded() {
			t.Error(end)
		}
		if got := v.result(run, "joined.txt"); got != want {
			t.Errorf("run %d made %q", run, got)
		}
	}
	again := v.submit(twoSteps, texts, nil)
	if end := v.await(again); !end.GetSucceeded() || end.GetSteps()[0].GetReused() != 3 ||
		end.GetSummary().GetAttempts() != 0 {
		t.Errorf("what was made before is made again: %v", end)
	}
	if got := v.result(again, "joined.txt"); got != "ONE TWO THREE " {
		t.Errorf("got %q", got)
	}
	if got := fmt.Sprint(v.runs()); got != "[3 demo succeeded 4/4 2 other succeeded 2/2 1 demo succeeded 4/4]" {
		t.Error(got)
	}
	v.retired(3)
	listed, err := v.client.ListJobs(t.Context(), &wire.ListJobsRequest{Run: first})
	if err != nil || listed.GetTotal() != 4 || listed.GetJobs()[3].GetState() != "done" {
		t.Error(listed, err)
	}
	if job, err := v.client.ShowJob(t.Context(), &wire.ShowJobRequest{Run: again, Job: "join"}); err != nil ||
		len(job.GetAttempts()) != 1 || !job.GetAttempts()[0].GetEarlier() {
		t.Errorf("it is not known how a result was made: %v, %v", job, err)
	}
	if _, err := v.client.Retry(t.Context(), &wire.RetryRequest{Run: first}); connect.CodeOf(err) !=
		connect.CodeFailedPrecondition {
		t.Error(err)
	}
	if _, err := v.client.Stop(t.Context(), &wire.StopRequest{Run: first}); err == nil ||
		!strings.Contains(err.Error(), "run 1 has ended") {
		t.Error(err)
	}
}

// retired waits until the core has forgotten all runs up to a number, and nothing of them is in the
// store of the server but how they ended.
func (v *service) retired(last taskqueue.RunID) {
	v.t.Helper()
	changed := v.server.loop.Changes()
	for left := 1; left > 0; {
		left = 0
		err := v.server.inbox.Query(v.t.Context(), func(c *state.Cores) {
			for run := taskqueue.RunID(1); run <= last; run++ {
				if _, ok := c.Dispatch.Run(run); ok {
					left++
				}
			}
		})
		if err != nil {
			v.t.Fatal(err)
		}
		if left > 0 {
			<-changed
			changed = v.server.loop.Changes()
		}
	}
	for len(v.server.runs.all()) > 0 {
		<-changed
		changed = v.server.loop.Changes()
	}
	v.swept()
	for _, table := range append(records.Tables(), archivedTables...) {
		records, err := v.server.records.Load(v.t.Context(), table)
		if err != nil {
			v.t.Fatal(err)
		}
		for _, r := range records {
			if r.Run != 0 {
				v.t.Errorf("%s %d %s is still there", r.Table, r.Run, r.Key)
			}
		}
	}
}

// swept waits until the records of retired runs are deleted.
func (v *service) swept() {
	v.t.Helper()
	for {
		runs, err := state.LoadSwept(v.t.Context(), v.server.records)
		if err != nil {
			v.t.Fatal(err)
		}
		if len(runs) == 0 {
			return
		}
		_ = sched.Default().Sleep(v.t.Context(), time.Millisecond)
	}
}

// A server that is started again goes on with all runs, also with one that it had concluded and not
// put away.
func TestServerGoesOnWithItsRuns(t *testing.T) {
	texts, root := files.Folder(t, threeTexts), t.TempDir()
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		if a.GetStep() == "join" {
			once.Do(func() { close(reached); <-goOn })
		}
		return twoStepsScript(a, read)
	}
	v := startService(t, root, slow)
	run := v.submit(twoSteps, texts, nil)
	waiting := v.submit(strings.Replace(twoSteps, "demo", "later", 1), texts, nil)
	<-reached
	v.client.Close()
	v.server.Stop(true)
	close(goOn)
	if err := <-v.ended; err != nil {
		t.Fatal(err)
	}
	if _, err := api.Connect(t.Context(), root); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Error(err)
	}
	files.Write(t, filepath.Join(texts, "in/d.txt"), "new") // comes too late
	v = startService(t, root, twoStepsScript)
	defer v.stop()
	for _, run := range []uint32{run, waiting} {
		if end := v.await(run); !end.GetSucceeded() {
			t.Error(end)
		}
		if got := v.result(run, "joined.txt"); got != "ONE TWO THREE " {
			t.Errorf("run %d made %q", run, got)
		}
	}
}

// A submission that is repeated with its key is one run, also after a restart. Another workflow with
// the key is refused.
func TestKeysOfSubmissions(t *testing.T) {
	texts, root := files.Folder(t, threeTexts), t.TempDir()
	keyed := func(r *wire.SubmitWorkflowRequest) { r.Key = "nightly" }
	v := startService(t, root, twoStepsScript)
	first := v.submit(twoSteps, texts, keyed)
	v.await(first)
	v.retired(1)
	if again := v.submit(twoSteps, texts, keyed); again != first {
		t.Errorf("runs %d and %d", first, again)
	}
	v.stop()
	v = startService(t, root, twoStepsScript)
	defer v.stop()
	if again := v.submit(twoSteps, texts, keyed); again != first {
		t.Errorf("runs %d and %d", first, again)
	}
	for other, change := range map[string]func(*wire.SubmitWorkflowRequest){
		"workflow": func(r *wire.SubmitWorkflowRequest) {
			r.Workflow = []byte(strings.Replace(twoSteps, "cat", "tac", 1))
		},
		"folder":          func(r *wire.SubmitWorkflowRequest) { r.Folder = files.Folder(t, threeTexts) },
		"results":         func(r *wire.SubmitWorkflowRequest) { r.Results = t.TempDir() },
		"flags":           func(r *wire.SubmitWorkflowRequest) { r.KeepGoing, r.Priority = true, 1 },
		"folder, uploads": func(r *wire.SubmitWorkflowRequest) { r.Folder, r.Uploads = "", uploaded(threeTexts) },
	} {
		r := &wire.SubmitWorkflowRequest{Workflow: []byte(twoSteps), Folder: texts, Key: "nightly"}
		change(r)
		_, err := v.client.SubmitWorkflow(t.Context(), r)
		if connect.CodeOf(err) != connect.CodeAlreadyExists || !strings.Contains(err.Error(), "with other "+other+";") {
			t.Errorf("%s: %v", other, err)
		}
	}
	if got := len(v.runs()); got != 1 {
		t.Errorf("%d runs", got)
	}
}

func uploaded(texts map[string]string) (list []*wire.UploadedFile) {
	for path, text := range texts {
		list = append(list, &wire.UploadedFile{Path: path, Content: []byte(text)})
	}
	return list
}

// Uploads and parameters are what they are in any order, and others are not taken for them.
func TestKeysOfUploads(t *testing.T) {
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	text := "workflow: w\nparameters: {p: a}\ninputs: {in: {files: in}}\n" +
		"steps: {s: {reads: in, writes: out, command: 'echo ${p}'}}\n"
	submit := func(p string, uploads ...*wire.UploadedFile) (*wire.SubmitWorkflowResponse, error) {
		return v.client.SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
			Workflow: []byte(text), Uploads: uploads, Key: "k", Parameters: map[string]string{"p": p},
		})
	}
	in, more := &wire.UploadedFile{Path: "in", Content: []byte("x")}, &wire.UploadedFile{Path: "more"}
	if _, err := submit("a", in, more); err != nil {
		t.Fatal(err)
	}
	if again, err := submit("a", more, in); err != nil || !again.GetKnown() {
		t.Error(again, err)
	}
	in.Content = []byte("y")
	if _, err := submit("a", more, in); err == nil || !strings.Contains(err.Error(), "with other uploads;") {
		t.Error(err)
	}
	in.Content = []byte("x")
	if _, err := submit("b", more, in); err == nil || !strings.Contains(err.Error(), "with other parameters;") {
		t.Error(err)
	}
}

// A run that has failed stays, so that its jobs can be tried again, also in a later server. Then it
// goes on to its end.
func TestFailedRunsCanBeTriedAgain(t *testing.T) {
	texts, root := files.Folder(t, threeTexts), t.TempDir()
	failing := func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		if a.GetStep() == "join" {
			return nil, 3
		}
		return twoStepsScript(a, read)
	}
	v := startService(t, root, failing)
	run := v.submit(twoSteps, texts, nil)
	if end := v.await(run); end.GetSucceeded() || len(end.GetProblems()) != 1 {
		t.Error(end)
	}
	if _, err := v.client.Retry(t.Context(), &wire.RetryRequest{Run: run}); err != nil {
		t.Fatal(err)
	}
	if end := v.await(run); end.GetSucceeded() || len(end.GetProblems()) != 1 {
		t.Error(end)
	}
	v.stop()
	v = startService(t, root, twoStepsScript)
	defer v.stop()
	if got := fmt.Sprint(v.runs()); got != "[1 demo failed 3/4]" {
		t.Error(got)
	}
	if _, err := v.client.Retry(t.Context(), &wire.RetryRequest{Run: run}); err != nil {
		t.Fatal(err)
	}
	if end := v.await(run); !end.GetSucceeded() || len(end.GetProblems()) != 0 {
		t.Error(end)
	}
	v.retired(1)
	if got := v.result(run, "joined.txt"); got != "ONE TWO THREE " {
		t.Errorf("got %q", got)
	}
}

// A run is stopped alone, and removed with what it has left; the others stay.
func TestRunsAreStoppedAndRemoved(t *testing.T) {
	texts := files.Folder(t, threeTexts)
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	open := v.submit("workflow: w\nopen: true\n", texts, nil)
	done := v.submit(twoSteps, texts, nil)
	v.await(done)
	remove := func(dry bool, runs ...uint32) (*wire.RemoveRunsResponse, error) {
		return v.client.RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: runs, DryRun: dry})
	}
	if _, err := remove(false, done, open); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Error(err)
	}
	if _, err := v.client.Stop(t.Context(), &wire.StopRequest{Run: open, Drain: true}); err != nil {
		t.Fatal(err)
	}
	if end := v.await(open); !end.GetEnded() {
		t.Error(end)
	}
	for _, dry := range []bool{true, false} {
		removed, err := remove(dry, done, open)
		if err != nil || len(removed.GetRuns()) != 2 || len(removed.GetRuns()[0].GetPaths()) != 2 {
			t.Errorf("dry %v: %v, %v", dry, removed, err)
		}
	}
	if got := v.runs(); len(got) != 0 {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(v.root, folder.ResultsFolder, fmt.Sprint(done))); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := v.client.ListJobs(t.Context(), &wire.ListJobsRequest{Run: done}); connect.CodeOf(err) !=
		connect.CodeNotFound {
		t.Error(err)
	}
	if next := v.submit(twoSteps, texts, nil); next != 3 {
		t.Errorf("run %d: a number is given twice", next)
	}
}

// Inputs may come along with the submission. Names that lead elsewhere are refused, and so is what
// is too much.
func TestUploads(t *testing.T) {
	v := startService(t, t.TempDir(), twoStepsScript)
	defer v.stop()
	run := v.submit(twoSteps, "", func(r *wire.SubmitWorkflowRequest) {
		r.Uploads = []*wire.UploadedFile{{Path: "in/a.txt", Content: []byte("a ")}, {Path: "in/b.txt", Content: []byte("b ")}}
	})
	if v.await(run); v.result(run, "joined.txt") != "A B " {
		t.Error(v.result(run, "joined.txt"))
	}
	for name, want := range map[string]connect.Code{
		"../x": connect.CodeInvalidArgument, "/x": connect.CodeInvalidArgument, "in/../../x": connect.CodeInvalidArgument,
		"": connect.CodeInvalidArgument, "in/large.txt": connect.CodeResourceExhausted,
	} {
		_, err := v.client.SubmitWorkflow(t.Context(), &wire.SubmitWorkflowRequest{
			Workflow: []byte(twoSteps), Uploads: []*wire.UploadedFile{{Path: name, Content: make([]byte, wire.MaxUploads+1)}},
		})
		if connect.CodeOf(err) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A folder is that of a workflow or that of a lasting server, and never both.
func TestKindsOfStates(t *testing.T) {
	root := files.Folder(t, threeTexts)
	newRun(t, root, twoSteps, twoStepsScript).mustSucceed()
	_, err := Open(t.Context(), Config{
		RunConfig:     RunConfig{Folder: root},
		ServiceConfig: ServiceConfig{Lasting: true},
	})
	if kind, ok := errors.AsType[*folder.KindError](err); !ok || kind.Lasting {
		t.Error(err)
	}
	v := startService(t, t.TempDir(), twoStepsScript)
	v.stop()
	r := newRun(t, v.root, twoSteps, twoStepsScript)
	_, err = Open(t.Context(), r.config)
	if kind, ok := errors.AsType[*folder.KindError](err); !ok || !kind.Lasting {
		t.Error(err)
	}
}

// That an open run takes no more jobs survives the server, as all that was acknowledged.
func TestClosedRunsStayClosed(t *testing.T) {
	texts, root := files.Folder(t, threeTexts), t.TempDir()
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	v := startService(t, root, func(a *wire.Assignment, _ func(string) string) (map[string]string, int) {
		once.Do(func() { close(reached); <-goOn })
		return map[string]string{a.GetOutputs()[0].GetLfn(): "made"}, 0
	})
	run := v.submit("workflow: w\nopen: true\n", texts, nil)
	job := func(name string) *wire.SubmitRequest {
		return &wire.SubmitRequest{Run: run, Jobs: []*wire.SubmittedJob{{
			Name: name, Payload: &wire.Payload{Shell: "make"}, Writes: []*wire.SubmittedOutput{{Lfn: name}},
		}}}
	}
	for _, name := range []string{"a", "b"} {
		if _, err := v.client.Submit(t.Context(), job(name)); err != nil {
			t.Fatal(err)
		}
	}
	<-reached
	if _, err := v.client.CloseInput(t.Context(), &wire.CloseInputRequest{Run: run}); err != nil {
		t.Fatal(err)
	}
	v.client.Close()
	v.server.Stop(true)
	close(goOn)
	if err := <-v.ended; err != nil {
		t.Fatal(err)
	}
	v = startService(t, root, func(a *wire.Assignment, _ func(string) string) (map[string]string, int) {
		return map[string]string{a.GetOutputs()[0].GetLfn(): "made"}, 0
	})
	defer v.stop()
	if end := v.await(run); !end.GetSucceeded() || v.result(run, "a")+v.result(run, "b") != "mademade" {
		t.Error(end)
	}
	if _, err := v.client.Submit(t.Context(), job("c")); err == nil {
		t.Error("a closed run takes a job")
	}
}
