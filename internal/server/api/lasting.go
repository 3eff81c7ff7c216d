package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"fairway/internal/flow/workflow"
	"fairway/internal/rights"
	"fairway/internal/server/convert"
	"fairway/internal/server/listen"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Lasting is a server that takes workflows while it runs.
type Lasting interface {
	// SubmitWorkflow begins a run, or finds the one of an earlier submission with the key. When it
	// returns, the run is durable.
	SubmitWorkflow(ctx context.Context, w *SubmittedWorkflow) (run taskqueue.RunID, known bool, err error)
	// Owner is to whom a run belongs that is kept.
	Owner(run taskqueue.RunID) (owner taskqueue.Account, ok bool)
	// GroupsOf are the groups that the file of shares has a user in.
	GroupsOf(user string) []string
	// ListRuns tells how the newest of the wanted runs stand that are kept, the newest first. more says that
	// there are older ones.
	ListRuns(ctx context.Context, q *RunQuery) (listed []RunStanding, more bool, err error)
	// RemoveRun forgets a run that has ended, with its records, logs and results folder; with dry it
	// only tells what would go.
	RemoveRun(ctx context.Context, run taskqueue.RunID, dry bool) (*RemovedRun, error)
	// Sharing tells from which file the server has the shares of users, after it has looked whether
	// that has changed, and what is wrong with it: empty where there is none, or nothing.
	Sharing(ctx context.Context) (file, problem string, err error)
	// Stop ends the server: with drain after the attempts that run, else at once.
	Stop(drain bool)
	Fleet
}

// SubmittedWorkflow is what a run of a lasting server is made of. Folder is an absolute path, or
// empty where Uploads are the inputs.
type SubmittedWorkflow struct {
	File       string
	Text       []byte
	Folder     string
	Parameters map[string]string
	Until      string
	KeepGoing  bool
	Results    string // a PFN; empty: the results folder of the run
	Key        string
	Uploads    []Upload
	Scales     workflow.Scales // of a recorded run
	WaitAnyway bool            // also for pilots that could run its steps, where it seems that there will be none
	User       string          // who submits
	Priority   int             // added to that of each step
	NoReuse    bool            // no result of another run is taken, or left to one
	Certain    bool            // that is proved
	Groups     []string        // in which the proof has the user
	Group      string          // whose share the run takes; empty: the first that has the user
}

// Upload is a file of a run, at a path below its folder.
type Upload struct {
	Path    string
	Content []byte
}

// RunQuery says which runs are wanted: those that have all that is given.
type RunQuery struct {
	States []string                           // one of them; empty: any
	Before taskqueue.RunID                    // numbers below; 0: all
	Limit  int                                // at most so many
	Seen   func(owner taskqueue.Account) bool // whose runs
	Fits   func(run *state.Run) bool          // nil: any
}

// RunStanding is how a run of a lasting server stands.
type RunStanding struct {
	Run     *state.Run
	Totals  taskqueue.Totals
	Results string // where they are published, for a person
}

// RemovedRun is what was removed with a run, or would be.
type RemovedRun struct {
	Run   taskqueue.RunID
	Paths []string
	Bytes int64

	// Results that it names: of each whether it goes, and what keeps it.
	Results []RunResult
}

// RunResult is a result that a run names.
type RunResult struct {
	taskqueue.NamedResult
	NamedBy []string // the other runs that name it, for people
}

// stays reports whether the result is kept without the run.
func (r *RunResult) stays() bool { return len(r.Others) > 0 || !r.Until.IsZero() }

// maxResultsTold bounds the results of a run that an answer has one by one.
const maxResultsTold = 1000

func (r *RemovedRun) toWire() *wire.RemovedRun {
	w := &wire.RemovedRun{Run: uint32(r.Run), Paths: r.Paths, Bytes: r.Bytes}
	for i := range r.Results {
		result := &r.Results[i]
		if result.stays() {
			w.ResultsKept, w.ResultBytesKept = w.ResultsKept+1, w.ResultBytesKept+result.Bytes
		} else {
			w.ResultsGone, w.ResultBytesGone = w.ResultsGone+1, w.ResultBytesGone+result.Bytes
		}
		if i >= maxResultsTold {
			continue
		}
		told := &wire.RunResult{
			Job: result.Job, Bytes: result.Bytes, NamedBy: result.NamedBy, Until: convert.InstantToWire(result.Until),
			Promised: result.Promised,
		}
		for _, file := range result.Files {
			told.Files = append(told.Files, file.File.LFN)
		}
		w.Results = append(w.Results, told)
	}
	return w
}

// MaxKey bounds the key of a submission, in bytes.
const MaxKey = 256

var errNotLasting = connect.NewError(connect.CodeFailedPrecondition, errors.New("this server runs the workflow of one "+
	"folder; `fairway serve` starts one that takes workflows"))

// lasting is the server, if it is one that lasts.
func (s *Service) lasting() (Lasting, error) {
	if s.server == nil {
		return nil, errNotLasting
	}
	return s.server, nil
}

// SubmitWorkflow begins a run.
func (s *Service) SubmitWorkflow(
	ctx context.Context, r *wire.SubmitWorkflowRequest,
) (*wire.SubmitWorkflowResponse, error) {
	if err := listen.Permit(ctx, rights.Submit); err != nil {
		return nil, err
	}
	server, err := s.lasting()
	if err != nil {
		return nil, err
	}
	w, err := submittedWorkflow(r)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if p := rights.Of(ctx); p.Certain() {
		w.User, w.Certain, w.Groups = p.User, true, p.Groups
	}
	size := 0
	for _, file := range w.Uploads {
		size += len(file.Content)
	}
	if size > wire.MaxUploads {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the uploads have %d bytes, and may have %d: "+
			"name a folder that the server sees, or URLs", size, wire.MaxUploads))
	}
	run, known, err := server.SubmitWorkflow(ctx, w)
	if err != nil {
		return nil, rpcError(err)
	}
	return &wire.SubmitWorkflowResponse{Run: uint32(run), Known: known}, nil
}

func submittedWorkflow(r *wire.SubmitWorkflowRequest) (*SubmittedWorkflow, error) {
	w := &SubmittedWorkflow{
		File: r.GetFile(), Text: r.GetWorkflow(), Folder: r.GetFolder(), Parameters: r.GetParameters(), Until: r.GetUntil(),
		KeepGoing: r.GetKeepGoing(), Results: r.GetResults(), Key: r.GetKey(), User: r.GetUser(), Group: r.GetGroup(),
		WaitAnyway: r.GetWaitAnyway(), NoReuse: r.GetNoReuse(), Priority: int(r.GetPriority()),
	}
	w.Scales = workflow.Scales{TimeScale: 1, SizeScale: 1}
	if r.TimeScale != nil {
		w.Scales.TimeScale = r.GetTimeScale()
	}
	if r.SizeScale != nil {
		w.Scales.SizeScale = r.GetSizeScale()
	}
	if w.File == "" {
		w.File = "workflow.yaml"
	}
	switch {
	case w.Folder != "" && !filepath.IsAbs(w.Folder):
		return nil, fmt.Errorf("the folder %q is relative: name an absolute path, on the machine of the server", w.Folder)
	case w.Folder != "" && len(r.GetUploads()) > 0:
		return nil, errors.New("a run has a folder or uploads: leave one of them out")
	case len(w.Key) > MaxKey:
		return nil, fmt.Errorf("the key has %d bytes, and may have %d", len(w.Key), MaxKey)
	}
	if w.Results != "" {
		if !strings.Contains(w.Results, "://") && !filepath.IsAbs(w.Results) {
			return nil, fmt.Errorf("the place of results %q is relative: name an absolute path or a URL", w.Results)
		}
		place, err := publish.ParsePlace(w.Results)
		if err != nil {
			return nil, err
		}
		w.Results = place
	}
	for _, file := range r.GetUploads() {
		name := file.GetPath()
		if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." {
			return nil, fmt.Errorf("an upload has the path %q: write one below the folder of the run, without \"..\"", name)
		}
		w.Uploads = append(w.Uploads, Upload{name, file.GetContent()})
	}
	return w, nil
}

// ListRuns lists the runs that are kept, the newest first.
func (s *Service) ListRuns(ctx context.Context, r *wire.ListRunsRequest) (*wire.ListRunsResponse, error) {
	if err := listen.Permit(ctx, rights.Look); err != nil {
		return nil, err
	}
	server, err := s.lasting()
	if err != nil {
		return nil, err
	}
	limit := wire.DefaultRunsListed
	if r.GetLimit() > 0 {
		limit = int(r.GetLimit())
	}
	q := &RunQuery{States: r.GetStates(), Limit: limit, Before: taskqueue.RunID(r.GetBefore())}
	q.Fits = fits(r.GetText())
	return s.listRuns(ctx, server, q)
}

func (s *Service) listRuns(ctx context.Context, server Lasting, q *RunQuery) (*wire.ListRunsResponse, error) {
	q.Seen = func(owner taskqueue.Account) bool { return s.sees(ctx, owner) }
	listed, more, err := server.ListRuns(ctx, q)
	if err != nil {
		return nil, rpcError(err)
	}
	response := &wire.ListRunsResponse{More: more}
	for i := range listed {
		response.Runs = append(response.Runs, listed[i].summary())
	}
	return response, nil
}

// fits looks for words; nil: there are none.
func fits(text string) func(run *state.Run) bool {
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return nil
	}
	return func(run *state.Run) bool { return hasWords(run, words) }
}

func hasWords(run *state.Run, words []string) bool {
	known := []string{run.Workflow, run.File, run.Account.User, run.Account.Group}
	for name, value := range run.Parameters {
		known = append(known, name+"="+value)
	}
	for i := range known {
		known[i] = strings.ToLower(known[i])
	}
	return !slices.ContainsFunc(words, func(word string) bool {
		return !slices.ContainsFunc(known, func(text string) bool { return strings.Contains(text, word) })
	})
}

// RunOf tells what a run of a lasting server was submitted as, and how it stands.
func (s *Service) RunOf(ctx context.Context, run Page) (*wire.RunSummary, error) {
	found, err := s.ListRuns(ctx, &wire.ListRunsRequest{Before: uint32(run) + 1, Limit: 1})
	if err == nil && (len(found.GetRuns()) == 0 || found.Runs[0].GetRun() != uint32(run)) {
		err = NoRun(uint32(run), ListedRuns)
	}
	if err != nil {
		return nil, err
	}
	return found.Runs[0], nil
}

func (s *RunStanding) summary() *wire.RunSummary {
	n := &s.Totals.ByState
	summary := &wire.RunSummary{
		Run: uint32(s.Run.ID), Workflow: s.Run.Workflow, File: s.Run.File, Folder: s.Run.Source, Results: s.Results,
		State: string(s.Run.State), Submitted: convert.InstantToWire(s.Run.Started),
		Ended: convert.InstantToWire(s.Run.Ended),
		Jobs:  int64(s.Totals.Jobs), Done: int64(n[taskqueue.Done]), Failed: int64(n[taskqueue.Failed]),
		Running: int64(n[taskqueue.Running]), Problems: s.Run.Problems, Parameters: s.Run.Parameters,
		User: s.Run.Account.User, Group: s.Run.Account.Group,
	}
	return summary
}

// RemoveRuns forgets runs that have ended: all that are named, or none.
func (s *Service) RemoveRuns(ctx context.Context, r *wire.RemoveRunsRequest) (*wire.RemoveRunsResponse, error) {
	if err := listen.Permit(ctx, rights.Change); err != nil {
		return nil, err
	}
	server, err := s.lasting()
	if err != nil {
		return nil, err
	}
	for _, run := range r.GetRuns() {
		if err := s.seen(ctx, run); run == 0 || err != nil {
			return nil, cmp.Or(err, NoRun(run, ListedRuns))
		}
	}
	response, err := removeRuns(ctx, server, r.GetRuns(), true)
	if err == nil && !r.GetDryRun() {
		response, err = removeRuns(ctx, server, r.GetRuns(), false)
	}
	return response, rpcError(err)
}

func removeRuns(ctx context.Context, server Lasting, runs []uint32, dry bool) (*wire.RemoveRunsResponse, error) {
	response := new(wire.RemoveRunsResponse)
	for at, run := range runs {
		if slices.Contains(runs[:at], run) {
			continue
		}
		removed, err := server.RemoveRun(ctx, taskqueue.RunID(run), dry)
		if err != nil {
			return nil, err
		}
		response.Runs = append(response.Runs, removed.toWire())
	}
	return response, nil
}
