package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"fairway/internal/flow/workflow"
	"fairway/internal/rights"
	"fairway/internal/server/folder"
	"fairway/internal/server/listen"
	"fairway/internal/server/loop"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Run is what the API shows: a run under way, or the records of one.
type Run interface {
	// ID is the number of the run.
	ID() taskqueue.RunID
	// Steps are the names of all steps of the workflow.
	Steps() []string
	// Query calls ask with the cores, which must not be kept or changed. Tally may know
	// no other attempts than those of the job; for job 0 there may be no Tally.
	Query(ctx context.Context, job taskqueue.JobID, ask func(*state.Cores)) error
	// QueryAll is Query with a Tally that knows all.
	QueryAll(ctx context.Context, ask func(*state.Cores)) error
	// QueryTally is QueryAll for Tally alone.
	QueryTally(ctx context.Context, ask func(*state.Tally)) error
	// Change carries out a request, or has the next run do it.
	Change(ctx context.Context, r *loop.Request) error
	// List answers ListJobs without the cores; nil if that takes them.
	List(ctx context.Context, r *wire.ListJobsRequest) (*wire.ListJobsResponse, error)
	// Provenance tells how a result of a job was made that an earlier run left:
	// that with a key, or the last one if none is given; nil if there is none.
	Provenance(ctx context.Context, job, key string) (*wire.Provenance, error)
	// Report fills in what the cores don't know. It is called within a question, with what that gets.
	Report(*wire.ProgressReport, *state.Cores)
	// Changes returns a channel that is closed at the next change, nil if there
	// will be none.
	Changes() <-chan struct{}
	// Ended returns a channel that is closed when it is known how the run ended.
	Ended() <-chan struct{}
}

// Runs are what a Service shows: the run of a folder, or those of a lasting server.
type Runs interface {
	// Find returns a run by its number; 0 is the one that there is. control is nil where
	// nothing runs. The error of one that is not there says which are.
	Find(ctx context.Context, number uint32) (run Run, control Control, err error)
}

// Service is the Workflow service (api.proto).
type Service struct {
	runs   Runs
	logs   state.Logs
	roots  storage.Roots
	sched  *sched.Scheduler
	server Lasting         // nil where the server runs one workflow only
	files  storage.Element // nil where nothing runs: then nobody reads files by it

	survivors func() int // of a run that was cut short; nil while one is under way

	archives archives
	failures failuresSeen
	figures  Figured // nil: it has none
	version  string  // of the program
}

// TellVersion says which version of the program the service tells.
func (s *Service) TellVersion(version string) { s.version = version }

// NewService makes the service of the runs of a folder.
func NewService(runs Runs, l folder.Layout, s *sched.Scheduler) *Service {
	return &Service{runs: runs, logs: state.Logs(l.Logs), roots: l.Roots(), sched: s}
}

// NewLastingService makes the service of a lasting server.
func NewLastingService(runs Runs, server Lasting, l folder.Layout, s *sched.Scheduler) *Service {
	service := NewService(runs, l, s)
	service.server = server
	return service
}

// ReadBy has the Service read stored files by an element. It returns the Service.
func (s *Service) ReadBy(files storage.Element) *Service {
	s.files = files
	return s
}

// view is a Service for one run.
type view struct {
	*Service
	run     Run
	control Control // nil where nothing runs
}

func (s *Service) of(ctx context.Context, r interface{ GetRun() uint32 }) (*view, error) {
	return s.allowed(ctx, r.GetRun(), rights.Look)
}

// toChange is of for a request that changes the run.
func (s *Service) toChange(ctx context.Context, r interface{ GetRun() uint32 }) (*view, error) {
	return s.allowed(ctx, r.GetRun(), rights.Change)
}

func (s *Service) allowed(ctx context.Context, number uint32, action rights.Action) (*view, error) {
	if err := listen.Permit(ctx, action); err != nil {
		return nil, err
	}
	if err := s.seen(ctx, number); err != nil {
		return nil, err
	}
	return s.find(ctx, number)
}

// seen is the error of a run that is not there, unless who asks sees it.
func (s *Service) seen(ctx context.Context, number uint32) error {
	if rights.Of(ctx).Role == rights.Admin || s.server != nil && number == 0 {
		return nil
	}
	if s.server != nil {
		if owner, ok := s.server.Owner(taskqueue.RunID(number)); ok && s.sees(ctx, owner) {
			return nil
		}
	}
	return NoRun(number, ListedRuns)
}

func (s *Service) sees(ctx context.Context, owner taskqueue.Account) bool {
	p := rights.Of(ctx)
	var groups []string
	if p.Role != rights.Admin && p.User != "" && owner.Group != "" {
		groups = s.server.GroupsOf(p.User)
	}
	return p.Sees(owner, groups)
}

func (s *Service) find(ctx context.Context, number uint32) (*view, error) {
	run, control, err := s.archives.find(ctx, s.runs, number)
	if err != nil {
		return nil, rpcError(err)
	}
	return &view{s, run, control}, nil
}

// ListedRuns says where the runs are found that there are.
const ListedRuns = "`fairway runs` lists those that there are"

// NoRun is the error of a request about a run that is not there; instead says which are.
func NoRun(number uint32, instead string) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no run %d here any more, or not yet; %s", number,
		instead))
}

// Only is the run of a folder.
type Only struct {
	Run
	Control Control // nil where nothing runs
}

// Find is part of Runs.
func (o Only) Find(_ context.Context, number uint32) (Run, Control, error) {
	if is := uint32(o.ID()); number != 0 && number != is {
		return nil, nil, NoRun(number, fmt.Sprintf("this folder has run %d", is))
	}
	return o.Run, o.Control, nil
}

// Control is for a run that is under way.
type Control interface {
	// CloseInput closes an open input, or all of them.
	CloseInput(ctx context.Context, name string) error
	// Leave closes an open run for one of several who add jobs to it: at once, or when those have left
	// who hold it. It returns how many those are.
	Leave(ctx context.Context) (held int, err error)
	// Hold keeps an open run from being closed by Leave, and from ending with the program for which it
	// was opened, until release is called, which is no error to call again.
	Hold() (release func(), err error)
	// FindFile describes a file that a submitted job reads as lfn: at a path on this machine,
	// relative to the folder of the run, or at a URL.
	FindFile(ctx context.Context, lfn, file string) (taskqueue.ExistingFile, error)
	// KeepPart keeps a part of a file for submitted jobs, for a lasting server only. It returns how much
	// of the file there is and, once it is complete, the path by which FindFile finds it. A part that is
	// not the next one, nor before it, is [ErrNotNext].
	KeepPart(p *Part) (size int64, file string, err error)
	// Check refuses submitted jobs that no pilot could ever run; with waitAnyway only those that one would
	// run otherwise than they ask for.
	Check(demands []workflow.Demand, waitAnyway bool) error
	// Stop ends the run: with drain after the attempts that run, else at once. It is false where the run has
	// ended before.
	Stop(drain bool) bool
	// PilotsWaiting says why pilots are not there yet, one sentence each for a person.
	PilotsWaiting() []string
}

func (s *Service) errNotRunning(a *view) error {
	if s.server != nil {
		return errRetired(a.run.ID())
	}
	return errNotRunning
}

var errNotRunning = connect.NewError(connect.CodeFailedPrecondition,
	fmt.Errorf("nothing runs in this folder; start it with `fairway run`"))

// JobNumber before a number means the job with that number, and no other.
const JobNumber = "#"

// findJob takes the number or the name of a job. A name that is a number is
// found by name if there is such a job, unless JobNumber stands before it.
func findJob(c *state.Cores, text string) (taskqueue.JobID, error) {
	digits, certain := strings.CutPrefix(text, JobNumber)
	if id, ok := c.Dispatch.JobNamed(c.Run, text); ok && !certain {
		return id, nil
	}
	if number, err := strconv.ParseUint(digits, 10, 32); err == nil {
		id := taskqueue.NewJobID(c.Run, uint32(number))
		if _, ok := c.Dispatch.Job(id); ok {
			return id, nil
		}
	}
	if id, ok := c.Dispatch.JobNamed(c.Run, text); ok {
		return id, nil
	}
	return 0, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no job %q; `fairway jobs` lists them", text))
}

// lookAt asks the state, but for Tally, and returns the error of the question or of ask.
func (a *view) lookAt(ctx context.Context, ask func(*state.Cores) error) error {
	var failure error
	if err := a.run.Query(ctx, 0, func(c *state.Cores) { failure = ask(c) }); err != nil {
		return rpcError(err)
	}
	return rpcError(failure)
}

// lookAtJob is lookAt with the job that a request names, and what Tally knows of it.
func (a *view) lookAtJob(
	ctx context.Context, r interface{ GetJob() string }, ask func(*state.Cores, taskqueue.JobID) error,
) error {
	var job taskqueue.JobID
	failure := a.lookAt(ctx, func(c *state.Cores) (err error) {
		job, err = findJob(c, r.GetJob())
		return err
	})
	if failure != nil {
		return failure
	}
	if err := a.run.Query(ctx, job, func(c *state.Cores) { failure = ask(c, job) }); err != nil {
		return rpcError(err)
	}
	return rpcError(failure)
}

// Cancel ends jobs. Those that wait for their outputs become blocked.
func (s *Service) Cancel(ctx context.Context, r *wire.CancelRequest) (*wire.ChangedJobs, error) {
	a, err := s.toChange(ctx, r)
	if err != nil {
		return nil, err
	}
	return a.changeJobs(ctx, func(c *state.Cores) ([]taskqueue.Input, []taskqueue.JobID, error) {
		jobs, err := jobsNamed(c, r.GetJobs())
		return []taskqueue.Input{taskqueue.Cancel{Jobs: jobs}}, jobs, err
	})
}

// Retry lets jobs run again that failed or were cancelled, or are done and whose stored
// outputs are lost.
func (s *Service) Retry(ctx context.Context, r *wire.RetryRequest) (*wire.ChangedJobs, error) {
	a, err := s.toChange(ctx, r)
	if err != nil {
		return nil, err
	}
	lost, err := a.lostOutputs(ctx, r)
	if err != nil {
		return nil, err
	}
	return a.changeJobs(ctx, func(c *state.Cores) ([]taskqueue.Input, []taskqueue.JobID, error) {
		if len(r.GetJobs()) == 0 {
			jobs := state.FailedJobs(c)
			return []taskqueue.Input{taskqueue.RetryJobs{Jobs: jobs}}, jobs, nil
		}
		jobs, err := jobsNamed(c, r.GetJobs())
		if err != nil {
			return nil, nil, err
		}
		inputs, err := retryInputs(c, jobs, lost)
		return inputs, jobs, err
	})
}

// Prioritize changes the priority of jobs that are not done or, if none are named, what is added to that of all
// jobs of the run.
func (s *Service) Prioritize(ctx context.Context, r *wire.PrioritizeRequest) (*wire.ChangedJobs, error) {
	a, err := s.toChange(ctx, r)
	if err != nil {
		return nil, err
	}
	changed, err := a.changeJobs(ctx, func(c *state.Cores) ([]taskqueue.Input, []taskqueue.JobID, error) {
		if run, _ := c.Dispatch.Run(c.Run); a.control != nil && run.State == taskqueue.RunEnded {
			return nil, nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf(
				"run %d has ended; `fairway retry` has it go on, if something of it failed or was cancelled", c.Run))
		}
		jobs, err := jobsNamed(c, r.GetJobs())
		return []taskqueue.Input{taskqueue.Prioritize{Run: c.Run, Jobs: jobs, Priority: int(r.GetPriority())}}, jobs, err
	})
	if err != nil {
		return nil, err
	}
	if len(r.GetJobs()) == 0 {
		changed.Notes = append(changed.Notes, fmt.Sprintf("%d is added to the priority that the jobs of the run were "+
			"submitted with, or will be; those that were given one by name keep it", r.GetPriority()))
	}
	return changed, nil
}

// lostOutputs are the stored outputs of the jobs of a request that are lost, by PFN. They
// are looked at beside the loop, since a server may take its time.
func (a *view) lostOutputs(ctx context.Context, r *wire.RetryRequest) (map[string]taskqueue.LostFile, error) {
	if len(r.GetJobs()) == 0 {
		return nil, nil
	}
	var files []taskqueue.StoredFile
	err := a.lookAt(ctx, func(c *state.Cores) error {
		jobs, err := jobsNamed(c, r.GetJobs())
		for _, id := range jobs {
			if job, _ := c.Dispatch.Job(id); job.State == taskqueue.Done {
				files = append(files, c.Dispatch.StoredBy(id)...)
			}
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return nil, err
	}
	quiet := func(string) {}
	lost := map[string]taskqueue.LostFile{}
	for _, file := range publish.LostFiles(ctx, a.roots, files, quiet) {
		lost[file.PFN] = file
	}
	return lost, ctx.Err()
}

func retryInputs(
	c *state.Cores, jobs []taskqueue.JobID, outputs map[string]taskqueue.LostFile,
) (inputs []taskqueue.Input, err error) {
	for _, id := range jobs {
		job, _ := c.Dispatch.Job(id)
		var lost []taskqueue.LostFile
		if job.State == taskqueue.Done {
			for _, file := range c.Dispatch.StoredBy(id) {
				if file, ok := outputs[file.PFN]; ok {
					lost = append(lost, file)
				}
			}
		}
		if len(lost) > 0 {
			inputs = append(inputs, taskqueue.LoseFiles{Files: lost})
		}
		if job.State != taskqueue.Failed && job.State != taskqueue.Cancelled && len(lost) == 0 && !c.Dispatch.HasLost(id) {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(
				"job %s is %v; what failed or was cancelled can be retried, and what is done and has lost stored files",
				job.Name, job.State))
		}
	}
	return append(inputs, taskqueue.RetryJobs{Jobs: jobs}), nil
}

// changeJobs carries out what choose makes of the jobs that there are, and tells
// how those stand then that it names.
func (a *view) changeJobs(
	ctx context.Context, choose func(*state.Cores) ([]taskqueue.Input, []taskqueue.JobID, error),
) (*wire.ChangedJobs, error) {
	changed := new(wire.ChangedJobs)
	var jobs []taskqueue.JobID
	var asked *loop.Request // with what the run adds to it
	var own int             // inputs that are not added
	err := a.run.Change(ctx, &loop.Request{
		Prepare: func(c *state.Cores, r *loop.Request) (err error) {
			r.Dispatch, jobs, err = choose(c)
			asked, own = r, len(r.Dispatch)
			return err
		},
		Ask: func(c *state.Cores) {
			for _, id := range jobs {
				if view, ok := c.Dispatch.Job(id); ok {
					changed.Jobs = append(changed.Jobs, summaryOf(c, &view))
				}
			}
			changed.Notes = notesOf(asked, own)
		},
	})
	return changed, rpcError(err)
}

// notesOf tells what a run has added to a request that changes jobs: that it goes on.
func notesOf(r *loop.Request, own int) (notes []string) {
	if len(r.Dispatch) > own {
		notes = append(notes, "the run goes on")
	}
	if n := len(r.Publish); n > 0 {
		names := make([]string, n)
		for i := range r.Publish {
			names[i] = r.Publish[i].File.LFN
		}
		notes = append(notes, "results that could not be published are published once more: "+publish.ShortList(names))
	}
	return notes
}

func jobsNamed(c *state.Cores, names []string) ([]taskqueue.JobID, error) {
	jobs := make([]taskqueue.JobID, len(names))
	for i, name := range names {
		var err error
		if jobs[i], err = findJob(c, name); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// CloseInput tells the run that an open input, or each of them, gets no more files, or that no
// more jobs are submitted.
func (s *Service) CloseInput(ctx context.Context, r *wire.CloseInputRequest) (*wire.CloseInputResponse, error) {
	a, err := s.toChange(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.control == nil {
		return nil, s.errNotRunning(a)
	}
	if r.GetLeave() {
		held, err := a.control.Leave(ctx)
		return &wire.CloseInputResponse{Held: uint32(held)}, rpcError(err)
	}
	return &wire.CloseInputResponse{}, rpcError(a.control.CloseInput(ctx, r.GetInput()))
}

// Stop ends the run: with drain after the attempts that run, else at once.
func (s *Service) Stop(ctx context.Context, r *wire.StopRequest) (*wire.StopResponse, error) {
	if s.server != nil && r.GetRun() == 0 {
		if err := listen.Permit(ctx, rights.Administer); err != nil {
			return nil, err
		}
		s.server.Stop(r.GetDrain())
		return &wire.StopResponse{}, nil
	}
	a, err := s.toChange(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.control == nil {
		return nil, s.errNotRunning(a)
	}
	if !a.control.Stop(r.GetDrain()) {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("run %d has ended already; `fairway retry "+
			"--run %d` has it go on, and `fairway rm %d` removes it", a.run.ID(), a.run.ID(), a.run.ID()))
	}
	return &wire.StopResponse{}, nil
}
