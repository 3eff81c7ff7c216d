package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/internal/flow/workflow"
	"fairway/internal/server/api"
	"fairway/internal/server/feed"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// run is a run under way with its rooms, as the API shows it (api.Run, api.Control). It lives
// from its beginning, or that of the server, until the run is over; in a lasting server, until
// it is retired.
type run struct {
	server  *Server
	config  RunConfig
	opened  *opened
	folders folder.Layout   // with the results folder of the run
	owner   taskqueue.RunID // of the published names; 0: all runs of the folder

	room    *loop.Run
	inbox   *loop.Inbox // of the run
	find    *feed.Finder
	feeds   *feed.Feeder
	results *publish.Results
	rest    context.CancelFunc // ends the rooms that work; nil before they do

	// The times of the run, and how it began. concluded is nil until it has ended.
	began     time.Time
	before    state.Run     // as earlier servers left it
	earlier   *wire.Summary // of what earlier servers have recorded; nil until the cores are loaded, the loop's
	begun     bool          // the cores were told that the run goes on
	retries   bool          // failed jobs are tried again when the cores are loaded first
	concluded atomic.Pointer[Outcome]
	putAway   atomic.Bool // of a lasting server: it is retired, or could not be
	end       runEnd
	holds     holds
}

// runEnd tells those who follow a run that it has ended. One that goes on gets another one.
type runEnd struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

func (e *runEnd) channel() chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ch == nil {
		e.ch = make(chan struct{})
	}
	return e.ch
}

func (e *runEnd) renew() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ch = nil
}

// newRun makes the rooms of a run of this server's folder.
func (s *Server) newRun(config RunConfig, o *opened, find *feed.Finder) *run {
	return s.newRunAt(config, o, find, s.folders, 0)
}

// newRunAt is newRun for a run with a results folder of its own, of which it is the owner.
func (s *Server) newRunAt(
	config RunConfig, o *opened, find *feed.Finder, folders folder.Layout, owner taskqueue.RunID,
) *run {
	id := o.runID()
	r := &run{
		server: s, config: config, opened: o, find: find, folders: folders, owner: owner, began: time.Now(),
		room: loop.NewRun(state.RunOf{Run: id, Workflow: config.Workflow}), inbox: s.inbox.Of(id),
	}
	r.feeds = feed.New(o.flow.Inputs(), find, r.inbox, s.sched, s.log)
	if s.config.Lasting {
		r.feeds.Piece = fedTogether
	}
	r.results = s.storage.NewResults(folders, owner, r.inbox, r.tellPerson)
	r.room.Results, r.room.InputsClosed = r.results, r.feeds.AllClosed
	return r
}

func (r *run) openResults(ctx context.Context) error {
	if r.config.Results != "" {
		if err := r.results.PublishAt(ctx, r.config.Results); err != nil {
			return err
		}
	}
	return r.results.PublishAtSites(ctx)
}

func (r *run) tellBeginning() {
	for _, note := range r.opened.losses() {
		r.room.Ending.Note(note)
	}
	if r.opened.decision == runDone && r.server.storage.OtherPlace {
		r.room.Ending.Note(fmt.Sprintf("all is done already: what is stored stays where it is; only what jobs write from "+
			"now on is stored at %s", publish.ShownPlace(r.server.config.Storage, r.folders)))
	}
}

// begin makes durable how the run begins, and reads what is recorded of its results. It comes
// before the loop runs.
func (r *run) begin(ctx context.Context) error {
	if r.owner == 0 {
		if err := r.opened.begin(ctx, &r.config, state.Logs(r.folders.Logs), r.server.log); err != nil {
			return err
		}
	}
	return r.ready(ctx)
}

// ready reads what is recorded of the results, and takes note of how earlier servers left the run.
func (r *run) ready(ctx context.Context) error {
	if err := r.results.Load(ctx); err != nil {
		return err
	}
	r.before = *r.opened.run
	r.retries = r.owner == 0 && r.opened.decision == runOn && !r.config.Workflow.Open()
	r.results.InputsGone = r.opened.run.InputsGone
	r.find.Run = r.opened.run.ID
	return nil
}

func (r *run) work(ctx context.Context, group *sync.WaitGroup) {
	ctx, r.rest = context.WithCancel(ctx)
	group.Go(func() { r.results.Run(ctx) })
	group.Go(func() { r.feeds.Run(ctx, r.opened.now, r.opened.inputs) })
}

func (r *run) tellPerson(text string) {
	r.room.Ending.Note(text)
	r.server.loop.Notify()
}

// ID is part of api.Run.
func (r *run) ID() taskqueue.RunID { return r.room.Run }

// Steps is part of api.Run.
func (r *run) Steps() []string { return r.config.Workflow.StepNames() }

// List is part of api.Run.
func (r *run) List(context.Context, *wire.ListJobsRequest) (*wire.ListJobsResponse, error) {
	return nil, nil // its cores are there
}

// Query is part of api.Run.
func (r *run) Query(ctx context.Context, job taskqueue.JobID, ask func(*state.Cores)) error {
	err := r.inbox.Query(ctx, ask)
	if !errors.Is(err, loop.ErrEnded) {
		return err
	}
	if !r.server.config.Lasting {
		ask(&r.room.Cores) // nobody changes them any more
		return nil
	}
	// It was retired after the question had found it.
	archived, missing := r.server.openArchive(ctx, r.room.Run)
	if missing != nil {
		return err
	}
	return archived.Query(ctx, job, ask)
}

// QueryAll is part of api.Run.
func (r *run) QueryAll(ctx context.Context, ask func(*state.Cores)) error {
	return r.Query(ctx, api.AllJobs, ask)
}

// QueryTally is part of api.Run.
func (r *run) QueryTally(ctx context.Context, ask func(*state.Tally)) error {
	return r.QueryAll(ctx, func(c *state.Cores) { ask(c.Tally) })
}

// Provenance is part of api.Run. A run of a lasting server is not told of results that it may not take.
func (r *run) Provenance(ctx context.Context, job, key string) (*wire.Provenance, error) {
	mayTake := state.EveryResult
	if r.owner != 0 && key == "" {
		mayTake = func(key string) (is bool) {
			err := r.inbox.Query(ctx, func(c *state.Cores) { is = c.Dispatch.IsSharedWith(c.Run, key) })
			return is && err == nil
		}
	}
	return state.LoadProvenance(ctx, r.server.records, job, key, mayTake)
}

// Report is part of api.Run. It counts what this server has seen. Where a run goes on that another
// server began, api.Resting counts both when it has ended. A run of a lasting server is counted as
// a whole. The cores may be those of its archive (Query): those of the loop, which may have the run
// again if the store fails, are not for who asks then, and nothing was owed.
func (r *run) Report(report *wire.ProgressReport, c *state.Cores) {
	report.Summary.Results = r.results.Place()
	before := 0.0
	if r.owner == 0 {
		subtract(report.Summary, r.earlier)
	} else {
		before, report.Summary.Pilots = r.before.Seconds, c.Tally.Workers()
		report.Summary.WaitingSeconds += r.before.Waiting
		report.Summary.Removed += r.before.Removed
		report.Summary.BytesRemoved += r.before.BytesRemoved
	}
	if end := r.ended(); end != nil {
		report.Ended, report.Succeeded, report.Problems, report.Notes = true, end.Succeeded, end.Problems, end.Notes
		report.Summary.WallSeconds = before + end.seconds
		return
	}
	report.Summary.WallSeconds = before + time.Since(r.began).Seconds()
	report.Problems, report.Notes = r.room.Ending.Problems(), r.room.Ending.Notes()
	if c == &r.room.Cores {
		report.ToPublish = int64(r.room.Ending.ToPublish())
	}
}

// Ended is part of api.Run.
func (r *run) Ended() <-chan struct{} { return r.end.channel() }

// tellEnd says, once for each end, that it is known how the run ended.
func (r *run) tellEnd() { close(r.end.channel()) }

// ended is how the run has ended; nil if it goes on. What a run of a lasting server has made is there
// for the next one when it is told to have ended.
func (r *run) ended() *Outcome {
	end := r.concluded.Load()
	if end != nil && end.Succeeded && r.owner != 0 && !r.putAway.Load() {
		return nil
	}
	return end
}

// subtract takes from a summary what attempts were and did that had ended when another was made.
func subtract(s, earlier *wire.Summary) {
	s.Attempts -= earlier.GetAttempts()
	s.CacheHits -= earlier.GetCacheHits()
	s.CacheMisses -= earlier.GetCacheMisses()
	s.RemoteHits -= earlier.GetRemoteHits()
	s.PrefetchHits -= earlier.GetPrefetchHits()
	s.BytesStaged -= earlier.GetBytesStaged()
	s.BytesCached -= earlier.GetBytesCached()
	s.BytesWritten -= earlier.GetBytesWritten()
	s.StagingSeconds -= earlier.GetStagingSeconds()
	s.ComputingSeconds -= earlier.GetComputingSeconds()
	s.StageInSeconds -= earlier.GetStageInSeconds()
	s.HiddenSeconds -= earlier.GetHiddenSeconds()
}

// Changes is part of api.Run.
func (r *run) Changes() <-chan struct{} { return r.server.loop.Changes() }

// Change is part of api.Run. A run of a lasting server that has ended goes on.
func (r *run) Change(ctx context.Context, request *loop.Request) error {
	if r.server.config.Lasting {
		request = r.goingOn(request)
	}
	return r.inbox.Do(ctx, request)
}

// goingOn is a request that has the run go on if it has ended, unless the request is refused.
func (r *run) goingOn(request *loop.Request) *loop.Request {
	going := *request
	going.Prepare = func(c *state.Cores, asked *loop.Request) error {
		if err := request.Prepare(c, asked); err != nil || !r.room.Ending.Over() {
			return err
		}
		run := *r.opened.run
		run.State, run.Problems, run.Ended, run.Totals = state.Underway, nil, time.Time{}, nil
		record, err := run.Record()
		if err != nil {
			return err
		}
		asked.Records = append(asked.Records, record)
		asked.Dispatch = append([]taskqueue.Input{r.config.setRun(c.Run)}, asked.Dispatch...)
		r.opened.run, r.before, r.began = &run, run, time.Now()
		r.concluded.Store(nil)
		r.putAway.Store(false)
		r.end.renew()
		asked.Publish = append(asked.Publish, r.room.Ending.GoOn()...)
		return nil
	}
	return &going
}

// close closes an open input, or all of them. That a run of a lasting server takes no more jobs is durable.
func (r *run) close(ctx context.Context, name string) error {
	if r.owner != 0 && r.config.Workflow.Open() && (name == "" || name == workflow.SubmittedJobs) {
		err := r.inbox.Do(ctx, &loop.Request{Prepare: func(_ *state.Cores, request *loop.Request) error {
			closed := *r.opened.run
			closed.Closed = true
			record, err := closed.Record()
			if err == nil {
				r.opened.run, request.Records = &closed, []taskqueue.Record{record}
			}
			return err
		}})
		if err != nil {
			return err
		}
	}
	return r.feeds.CloseInput(ctx, name)
}

// FindFile is part of api.Control.
func (r *run) FindFile(ctx context.Context, lfn, file string) (taskqueue.ExistingFile, error) {
	found, err := r.find.Named(ctx, lfn, file)
	return found.ExistingFile, err
}

// Check is part of api.Control.
func (r *run) Check(demands []workflow.Demand, waitAnyway bool) error {
	if r.server.config.Check == nil {
		return nil
	}
	limits := LimitsOf(r.opened.flow.Workflow().Limits, r.server.sharing.limits())
	return r.server.config.Check(demands, limits, waitAnyway)
}

// Stop is part of api.Control.
func (r *run) Stop(drain bool) bool {
	if r.owner != 0 && r.concluded.Load() != nil {
		return false
	}
	r.room.Ending.Request(drain)
	_ = r.inbox.Wake(context.Background())
	return true
}

// PilotsWaiting is part of api.Control.
func (r *run) PilotsWaiting() []string { return r.server.pilots.Waiting() }

// fedTogether is how many files of an input a lasting server takes up together. The jobs that they make are
// one transaction, which whoever changes something meanwhile waits for.
const fedTogether = 2000

// submissionName is by what a submission is known: two users may choose the same key.
type submissionName struct{ user, key string }

func submissionOf(run *state.Run) submissionName { return submissionName{run.Account.User, run.Key} }

// awayRun is what is known of a run whose records are in an archive.
type awayRun struct {
	ended   state.Status // how
	owner   taskqueue.Account
	results string // the place that it has named
}

type runs struct {
	own *run // of the folder; nil in a lasting server

	group sync.WaitGroup // of their rooms

	// Of a lasting server: submitting guards last, the number of the newest run, keys, the runs by the
	// keys of their submissions, and beginning, the keys of those that are not durable yet, with what is
	// closed then; ended are the runs that are over, and not put away. removing is held while one is
	// removed, and is locked before submitting.
	removing   sync.Mutex
	submitting sync.Mutex
	last       taskqueue.RunID
	keys       map[submissionName]*state.Run
	beginning  map[submissionName]chan struct{}
	ended      *loop.Mailbox[taskqueue.RunID]

	mu      sync.Mutex // guards what follows
	byID    map[taskqueue.RunID]*run
	away    map[taskqueue.RunID]awayRun // those that are put away
	working context.Context             // of their rooms; nil before they work
}

func (rs *runs) add(r *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.byID == nil {
		rs.byID = map[taskqueue.RunID]*run{}
	}
	rs.byID[r.room.Run] = r
	if r.owner == 0 {
		rs.own = r
	}
	if rs.working != nil {
		r.work(rs.working, &rs.group)
	}
}

func (rs *runs) get(id taskqueue.RunID) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.byID[id]
}

func (rs *runs) drop(r *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.byID, r.room.Run)
	if r.rest != nil {
		r.rest()
	}
}

// putAway takes note of how a run has ended whose records are in an archive.
func (rs *runs) putAway(run *state.Run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.away == nil {
		rs.away = map[taskqueue.RunID]awayRun{}
	}
	rs.away[run.ID] = awayRun{run.State, run.Account, run.Results}
}

func (rs *runs) endedAs(id taskqueue.RunID) (ended state.Status, ok bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	away, ok := rs.away[id]
	return away.ended, ok
}

// owner is to whom a run belongs that is kept.
func (rs *runs) owner(id taskqueue.RunID) (owner taskqueue.Account, ok bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.byID[id]; r != nil {
		return r.config.Account, true
	}
	away, ok := rs.away[id]
	return away.owner, ok
}

// publishing is a run of another scope whose results are at a place (placeOf), in it or around it; 0: none.
func (rs *runs) publishing(at, scope string) taskqueue.RunID {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	meets := func(owner taskqueue.Account, results string) bool {
		if results == "" || scopeOf(owner) == scope {
			return false
		}
		other, err := placeOf(results)
		return err == nil && (strings.HasPrefix(at+"/", other+"/") || strings.HasPrefix(other+"/", at+"/"))
	}
	for id, r := range rs.byID {
		if meets(r.config.Account, r.config.Results) {
			return id
		}
	}
	for id, away := range rs.away {
		if meets(away.owner, away.results) {
			return id
		}
	}
	return 0
}

// remove forgets a run that is put away.
func (rs *runs) remove(id taskqueue.RunID) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.away, id)
}

// numbers are those of all runs that are kept, the newest first.
func (rs *runs) numbers() []taskqueue.RunID {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	numbers := slices.AppendSeq(slices.Collect(maps.Keys(rs.byID)), maps.Keys(rs.away))
	slices.Sort(numbers)
	slices.Reverse(numbers)
	return slices.Compact(numbers)
}

func (rs *runs) all() []*run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return slices.SortedFunc(maps.Values(rs.byID), func(a, b *run) int { return cmp.Compare(a.room.Run, b.room.Run) })
}

func (rs *runs) rooms() (rooms []*loop.Run) {
	for _, r := range rs.all() {
		rooms = append(rooms, r.room)
	}
	return rooms
}

func (rs *runs) work(ctx context.Context) {
	all := rs.all()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.working = ctx
	for _, r := range all {
		r.work(ctx, &rs.group)
	}
}

func (rs *runs) rest() { rs.group.Wait() }
