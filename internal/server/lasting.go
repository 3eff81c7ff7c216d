package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/api"
	"fairway/internal/server/feed"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
	"fairway/internal/wfformat"
	"fairway/lib/sched"
)

// A lasting server takes workflows while it runs (API call SubmitWorkflow). Each becomes a run
// in the one core. A run that has succeeded is retired at once: its records move to a store of
// its own, the archive, where people still see it, and the core forgets it. One that failed or was
// stopped stays in the core, since its jobs may be tried again, until a person removes it.

// submissionTable has by run what was submitted: submission. It moves to the archive with the run.
const submissionTable = "server_submission"

const submissionKey = "submission"

// lastTable has one record, of the highest number that a run had when one was removed.
const (
	lastTable  = "server_last"
	lastRunKey = "run"
)

// submission is what a run of a lasting server is made of.
type submission struct {
	Key        string            `json:"key,omitempty"` // that a person gave
	File       string            `json:"file"`
	Text       []byte            `json:"text"`
	Folder     string            `json:"folder"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Until      string            `json:"until,omitempty"`
	KeepGoing  bool              `json:"keep_going,omitempty"`
	Results    string            `json:"results,omitempty"`
	Scales     *workflow.Scales  `json:"scales,omitempty"` // of a recorded run
	Account    taskqueue.Account `json:"account,omitzero"`
	Scope      string            `json:"scope,omitempty"`
	NoReuse    bool              `json:"no_reuse,omitempty"`
	Priority   int               `json:"priority,omitempty"` // added to that of each step
}

func (b *submission) parse() (*workflow.Workflow, error) {
	var scales workflow.Scales
	if b.Scales != nil {
		scales = *b.Scales
	}
	work, err := wfformat.ParseEither(b.File, b.Text, scales)
	if err == nil {
		work, err = work.With(b.Parameters)
	}
	if err == nil && b.Until != "" {
		work, err = work.Until(b.Until)
	}
	if err == nil {
		work, err = work.Raised(b.Priority)
	}
	return work, err
}

func (b *submission) config(work *workflow.Workflow) RunConfig {
	return RunConfig{
		Workflow: work, Folder: b.Folder, KeepGoing: b.KeepGoing, Results: b.Results, Account: b.Account,
		Scope: b.Scope, NoReuse: b.NoReuse,
	}
}

// finderOf finds the inputs of a run with folders of its own. The folder is not that of the state, so
// files have absolute names.
func (s *Server) finderOf(b *submission, own string) *feed.Finder {
	find := feed.NewFinder(b.Folder, s.config.tellingSlow(s.element))
	find.Contents, find.Compared = s.contents, s.config.CompareInputs
	find.Apart, find.Alone = true, own
	find.Made = s.ownIn(filepath.Join(folder.InputsName, s.folders.ID), own)
	return find
}

// layoutOf are the folders of a run: those of the state, with a results folder of its own.
func (s *Server) layoutOf(run taskqueue.RunID) folder.Layout {
	l := s.folders
	l.Results = filepath.Join(l.Results, strconv.FormatUint(uint64(run), 10))
	return l
}

// ownIn is the folder of a run in a folder of the state, by the name that its run gives (state.Run.Own).
func (s *Server) ownIn(place, own string) string { return filepath.Join(s.folders.State, place, own) }

// ownPlaces have a folder for each run that needs one: with what came with its submission, and with
// what was made for a recorded run.
func (s *Server) ownPlaces() []string {
	return []string{folder.UploadsName, filepath.Join(folder.InputsName, s.folders.ID)}
}

func (s *Server) ownOf(run *state.Run) (paths []string) {
	for _, place := range s.ownPlaces() {
		paths = append(paths, s.ownIn(place, run.OwnName()))
	}
	return paths
}

func (s *Server) sweepOwn(recorded []*state.Run) error {
	known := map[string]bool{}
	for _, run := range recorded {
		known[run.OwnName()] = true
	}
	for _, place := range s.ownPlaces() {
		entries, err := os.ReadDir(filepath.Join(s.folders.State, place))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, entry := range entries {
			if known[entry.Name()] {
				continue
			}
			if err := os.RemoveAll(s.ownIn(place, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) openSubmitted(ctx context.Context) error {
	recorded, err := state.LoadRuns(ctx, s.records)
	if err != nil {
		return err
	}
	if err := s.sweepOwn(recorded); err != nil {
		return err
	}
	last, err := state.LoadOf[taskqueue.RunID](ctx, s.records, lastTable, 0)
	if err != nil {
		return err
	}
	for _, id := range last {
		s.runs.last = id
	}
	for _, run := range recorded {
		s.runs.last = max(s.runs.last, run.ID)
		if run.Key != "" {
			s.runs.keys[submissionOf(run)] = run
		}
		if run.Archived {
			s.sharing.keep(run.Account, run.Stored)
			s.runs.putAway(run)
			continue
		}
		r, err := s.reopen(ctx, run)
		if err != nil {
			return fmt.Errorf("run %d: %w", run.ID, err)
		}
		s.runs.add(r)
	}
	return nil
}

func (s *Server) reopen(ctx context.Context, run *state.Run) (*run, error) {
	all, err := state.LoadOf[submission](ctx, s.records, submissionTable, run.ID)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("there are %d records of what was submitted, and should be one", len(all))
	}
	workflow, err := all[0].parse()
	if err != nil {
		return nil, err
	}
	find := s.finderOf(&all[0], run.OwnName())
	find.Run = run.ID
	o := &opened{store: s.records, run: run, decision: runOn, now: map[string][]flow.InputFile{}}
	if o.inputs, err = state.LoadOf[state.Input](ctx, s.records, state.InputTable, run.ID); err != nil {
		return nil, err
	}
	find.Contents.Remember(o.inputs)
	if o.flow, err = flow.New(workflow); err != nil {
		return nil, err
	}
	r := s.newRunAt(all[0].config(workflow), o, find, s.layoutOf(run.ID), run.ID)
	if run.State != state.Underway {
		r.room.Ending.Rest()
		r.concluded.Store(&Outcome{
			Succeeded: run.State == state.Succeeded, Stopped: run.State == state.Stopped,
			Problems: run.Problems, Notes: run.Notes,
		})
		if run.State != state.Succeeded {
			r.tellPutAway()
		}
	} else if err := o.findClosed(ctx, find); err != nil {
		r.feeds.Unfound = fmt.Errorf("an input could not be looked at when the server began again: %w", err)
	}
	return r, r.openResults(ctx)
}

func (o *opened) findClosed(ctx context.Context, find *feed.Finder) (err error) {
	for _, in := range o.flow.Inputs() {
		fed := slices.ContainsFunc(o.inputs, func(r state.Input) bool { return r.Input == in.Name && !r.Part })
		if !in.IsOpen() && !fed {
			files, _, failure := find.Find(ctx, in, o.fed(in))
			o.now[in.Name], err = files, errors.Join(err, failure)
		}
	}
	return err
}

// SubmitWorkflow is part of api.Lasting.
func (s *Server) SubmitWorkflow(
	ctx context.Context, w *api.SubmittedWorkflow,
) (id taskqueue.RunID, known bool, err error) {
	b := &submission{
		Key: w.Key, File: w.File, Text: w.Text, Folder: w.Folder, Parameters: w.Parameters, Until: w.Until,
		KeepGoing: w.KeepGoing, Results: w.Results, NoReuse: w.NoReuse, Priority: w.Priority,
	}
	if wfformat.Is(b.Text) {
		b.Scales = &w.Scales
	}
	work, err := b.parse()
	if err != nil {
		return 0, false, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var limits map[string]int64
	if b.Account, b.Scope, limits, err = s.accountOf(ctx, w); err != nil {
		return 0, false, err
	}
	if s.config.Check != nil {
		if err := s.config.Check(work.Demands(), LimitsOf(work.Limits, limits), w.WaitAnyway); err != nil {
			return 0, false, connect.NewError(connect.CodeInvalidArgument, err)
		}
	}
	if err := s.space.refuse(); err != nil {
		return 0, false, err
	}
	if err := s.findTools(ctx, work.Demands(), w.WaitAnyway); err != nil {
		return 0, false, err
	}
	var meaning map[string]string
	if b.Key != "" {
		meaning = b.meaning(work.Digest(), w.Uploads)
		run, done, err := s.runs.claim(ctx, s.sched, submissionName{b.Account.User, b.Key})
		switch {
		case err != nil:
			return 0, false, err
		case run != nil:
			return run.ID, true, refuseOther(run, meaning, work.Digest(), b.Results)
		}
		defer done()
	}
	own := strings.ToLower(rand.Text()[:10])
	if b.Folder == "" {
		b.Folder = s.ownIn(folder.UploadsName, own)
		err = writeUploads(b.Folder, w.Uploads)
	}
	var o *opened
	find := s.finderOf(b, own)
	if err == nil {
		o, err = s.openSubmission(ctx, b, work, find)
	}
	if err == nil {
		o.run.Own, o.run.Meaning = own, meaning
		id, err = s.beginRun(ctx, b, o, find)
	}
	if err != nil && !errors.Is(err, loop.ErrEnded) { // else the next server knows whether the store has it
		for _, path := range s.ownOf(&state.Run{Own: own}) {
			_ = os.RemoveAll(path)
		}
	}
	return id, false, err
}

// claim returns the run of a user's key. Where there is none, whoever asks is to begin it, and calls done
// when it is durable or refused; others who ask meanwhile wait for that.
func (rs *runs) claim(ctx context.Context, s *sched.Scheduler, key submissionName) (run *state.Run, done func(),
	err error,
) {
	for {
		rs.submitting.Lock()
		run, begun := rs.keys[key], rs.beginning[key]
		if run == nil && begun == nil {
			begun = make(chan struct{})
			rs.beginning[key] = begun
			rs.submitting.Unlock()
			return nil, func() {
				rs.submitting.Lock()
				defer rs.submitting.Unlock()
				delete(rs.beginning, key)
				close(begun)
			}, nil
		}
		rs.submitting.Unlock()
		if run != nil {
			return run, nil, nil
		}
		if _, err := sched.Receive(ctx, s, begun); !errors.Is(err, sched.ErrChannelClosed) {
			return nil, nil, err
		}
	}
}

// openSubmission looks at what a run will read and where it will publish. Others may be submitted
// meanwhile: it may take as long as slow servers do.
func (s *Server) openSubmission(
	ctx context.Context, b *submission, work *workflow.Workflow, find *feed.Finder,
) (*opened, error) {
	invalid := func(err error) error { return connect.NewError(connect.CodeInvalidArgument, err) }
	fresh, err := flow.New(work)
	if err != nil {
		return nil, invalid(err)
	}
	o := &opened{store: s.records, flow: fresh, decision: runOn, now: map[string][]flow.InputFile{}}
	for _, in := range fresh.Inputs() {
		if in.IsOpen() {
			continue
		}
		if o.now[in.Name], _, err = find.Find(ctx, in, nil); err != nil {
			return nil, invalid(asServer(err, "reads inputs", "; `--upload` sends them along"))
		}
	}
	if b.Results != "" {
		if err = s.notOfAnotherRun(b.Results, b.Scope); err == nil {
			err = publish.CheckWritable(b.Results)
		}
		if err == nil {
			err = s.storage.TryPlace(ctx, b.Results)
		}
		if err != nil {
			return nil, invalid(fmt.Errorf("results: %w", asServer(err, "writes results", "")))
		}
	}
	o.run = &state.Run{
		Form: state.Form, Started: time.Now(), Parameters: work.Set(), Workflow: work.Name, File: b.File,
		Source: b.Folder, Digest: work.Digest(), Steps: work.StepNames(), Target: work.Target(), Results: b.Results,
		State: state.Underway, Key: b.Key, Account: b.Account,
	}
	return o, nil
}

// notOfAnotherRun refuses a place for results in the folder that another run of this server has for
// its own, or that a run of other people has named: they do not see this one, and files of one name would be
// those of the last. A folder that holds the server's own is refused too: results could be named like its state.
func (s *Server) notOfAnotherRun(place, scope string) error {
	at, err := placeOf(place)
	if err != nil {
		return err
	}
	own, err := filepath.EvalSymlinks(s.folders.Workflow)
	if err == nil && storage.IsLocal(place) && strings.HasPrefix(own+"/", at+"/") {
		return fmt.Errorf("%s holds the folder of this server, with its state and the results of others: "+
			"name another folder, such as one beside it", place)
	}
	if run := s.runs.publishing(at, scope); run != 0 {
		return fmt.Errorf("%s is where run %d of other people has its results: name another place", place, run)
	}
	if !storage.IsLocal(place) {
		return nil
	}
	results, err := filepath.EvalSymlinks(s.folders.Results)
	if err != nil {
		results = s.folders.Results
	}
	below, inside := strings.CutPrefix(at, results+"/")
	first, _, _ := strings.Cut(below, "/")
	if _, err := strconv.ParseUint(first, 10, 32); inside && err == nil {
		return fmt.Errorf("%s is where run %s of this server has its results: name another folder", at, first)
	}
	return nil
}

// placeOf is a place of results as it can be compared with others: of a folder the path that no link is in.
func placeOf(place string) (string, error) {
	if place == "" || !storage.IsLocal(place) {
		return strings.TrimRight(place, "/"), nil
	}
	path, err := storage.Path(place)
	if err != nil {
		return "", err
	}
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) { // as far as it is there
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return strings.TrimSuffix(filepath.Join(real, strings.TrimPrefix(path, at)), "/"), nil
		}
	}
	return strings.TrimSuffix(path, "/"), nil // the root is empty, so that all is below it
}

// asServer adds to an error of permission whose permission it is: who submits may have it.
func asServer(err error, does, instead string) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	name := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return fmt.Errorf("%w; the server %s as the user %s%s", err, does, name, instead)
}

// beginRun gives a run its number and has the loop begin it. When it returns without an error, the
// run is durable. Nothing is begun for a caller that has gone before the loop had the run.
func (s *Server) beginRun(
	ctx context.Context, b *submission, o *opened, find *feed.Finder,
) (id taskqueue.RunID, err error) {
	r, begun, err := s.handOver(ctx, b, o, find)
	if err != nil {
		return 0, err
	}
	if err := begun(context.WithoutCancel(ctx)); err != nil {
		s.runs.submitting.Lock()
		defer s.runs.submitting.Unlock()
		if id := r.room.Run; s.runs.last == id && !errors.Is(err, loop.ErrEnded) {
			s.runs.last-- // the next one has it
		}
		return 0, err
	}
	s.runs.add(r)
	if b.Key != "" {
		s.runs.submitting.Lock()
		s.runs.keys[submissionOf(o.run)] = o.run
		s.runs.submitting.Unlock()
	}
	return r.room.Run, nil
}

// handOver hands a run to the loop under the next number: the core takes numbers in order. Nobody waits here
// for what others submit to be durable.
func (s *Server) handOver(
	ctx context.Context, b *submission, o *opened, find *feed.Finder,
) (r *run, begun func(context.Context) error, err error) {
	s.runs.submitting.Lock()
	defer s.runs.submitting.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	id := s.runs.last + 1
	o.run.ID, find.Run = id, id
	r = s.newRunAt(b.config(o.flow.Workflow()), o, find, s.layoutOf(id), id)
	r.begun, r.results.Tried = true, true
	if err := r.openResults(ctx); err != nil {
		return nil, nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("results: %w", err))
	}
	if err := r.ready(ctx); err != nil {
		return nil, nil, err
	}
	run, err := o.run.Record()
	if err != nil {
		return nil, nil, err
	}
	submitted, err := state.NewRecord(submissionTable, id, submissionKey, b)
	if err != nil {
		return nil, nil, err
	}
	begun, err = s.inbox.Begin(ctx, r.room, &loop.Request{
		Records: []taskqueue.Record{run, submitted}, Dispatch: []taskqueue.Input{r.config.setRun(id)},
		Flow: []flow.Input{flow.Tick{}},
	})
	if err == nil {
		s.runs.last = id
	}
	return r, begun, err
}

func writeUploads(at string, files []api.Upload) error {
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, file := range files {
		if err := root.MkdirAll(filepath.Dir(file.Path), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(file.Path, file.Content, 0o600); err != nil {
			return err
		}
	}
	folder, err := os.Open(at)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(folder.Fd())), folder.Close())
}

// restRuns leaves the runs of a lasting server to the next one, when the loop has ended.
func (s *Server) restRuns(failure error) Outcome {
	if failure != nil {
		return Outcome{Problems: []string{failure.Error()}}
	}
	needed := publish.Stored{}
	for _, r := range s.runs.all() {
		needed.Merge(publish.StoredOf(&r.room.Cores))
		r.endPublishing()
		if r.concluded.Load() != nil {
			continue
		}
		run := r.opened.run
		run.Seconds = r.before.Seconds + time.Since(r.began).Seconds()
		record, err := run.Record()
		if err == nil {
			err = s.records.Apply(context.Background(), []taskqueue.Record{record})
		}
		if err != nil {
			s.log.Warn("how long a run took could not be recorded", "run", r.room.Run, "error", err)
		}
	}
	for pfn := range s.loop.Dispatch.ResultFiles {
		needed.Add(pfn)
	}
	if err := s.storage.Sweep(context.Background(), needed); err != nil {
		s.log.Warn("files that nobody needs could not be removed", "folder", s.folders.Storage, "error", err)
	}
	return Outcome{Succeeded: true}
}

// Find is part of api.Runs.
func (s *Server) Find(ctx context.Context, number uint32) (api.Run, api.Control, error) {
	if own := s.runs.own; own != nil {
		return api.Only{Run: own, Control: own}.Find(ctx, number)
	}
	if number == 0 {
		return nil, nil, connect.NewError(connect.CodeInvalidArgument,
			errors.New("this server has many runs: name one with --run; `fairway runs` lists them"))
	}
	if r := s.runs.get(taskqueue.RunID(number)); r != nil {
		return r, r, nil
	}
	archived, err := s.openArchive(ctx, taskqueue.RunID(number))
	switch _, kept := s.runs.owner(taskqueue.RunID(number)); {
	case err == nil:
		return archived, nil, nil
	case kept && !errors.Is(err, os.ErrNotExist): // who follows the run is to ask again
		return nil, nil, connect.NewError(connect.CodeUnavailable,
			fmt.Errorf("opening the archive of run %d: %w", number, err))
	}
	return nil, nil, api.NoRun(number, api.ListedRuns)
}

// Owner is part of api.Lasting.
func (s *Server) Owner(run taskqueue.RunID) (owner taskqueue.Account, ok bool) {
	return s.runs.owner(run)
}

// QueryFleet is part of api.Fleet.
func (s *Server) QueryFleet(ctx context.Context, ask func(*dispatch.Core)) error {
	return s.inbox.Query(ctx, func(c *state.Cores) { ask(c.Dispatch) })
}

// PilotsWaiting is part of api.Fleet.
func (s *Server) PilotsWaiting() []string { return s.pilots.Waiting() }

func (s *Server) openArchive(ctx context.Context, id taskqueue.RunID) (api.Archived, error) {
	return api.OpenArchived(ctx, s.layoutOf(id), s.archiveOf(id), s.records)
}

// ListRuns is part of api.Lasting. The records of those that are not listed are not read one by one.
func (s *Server) ListRuns(ctx context.Context, q *api.RunQuery) (listed []api.RunStanding, more bool, err error) {
	load := func(id taskqueue.RunID) (*state.Run, error) { return state.LoadRunOf(ctx, s.records, id) }
	numbers := s.runs.numbers()
	if len(numbers) > fewRuns && (q.Fits != nil || q.Limit > fewRuns) {
		all, err := state.LoadRuns(ctx, s.records)
		if err != nil {
			return nil, false, err
		}
		byID := make(map[taskqueue.RunID]*state.Run, len(all))
		for _, run := range all {
			byID[run.ID] = run
		}
		load = func(id taskqueue.RunID) (*state.Run, error) { return byID[id], nil }
	}
	live, err := s.standings(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, id := range numbers {
		if owner, ok := s.runs.owner(id); !ok || !q.Seen(owner) || q.Before > 0 && id >= q.Before {
			continue
		}
		standing, err := s.standing(id, q.States, live[id], load)
		switch {
		case err != nil:
			return nil, false, err
		case standing == nil || q.Fits != nil && !q.Fits(standing.Run):
		case len(listed) == q.Limit:
			return listed, true, nil
		default:
			listed = append(listed, *standing)
		}
	}
	return listed, false, nil
}

// fewRuns are as many as are sooner read one by one than all together.
const fewRuns = 1000

// liveStanding is how a run stands of which there are rooms.
type liveStanding struct {
	totals   *taskqueue.Totals // nil: it was retired meanwhile
	underway *state.Run        // its record, with its problems; nil if it is not under way
}

// standings are those of all runs in the core, by one question to the loop.
func (s *Server) standings(ctx context.Context) (map[taskqueue.RunID]*liveStanding, error) {
	all := s.runs.all()
	live := make(map[taskqueue.RunID]*liveStanding, len(all))
	for _, r := range all {
		live[r.room.Run] = new(liveStanding)
	}
	err := s.inbox.Query(ctx, func(c *state.Cores) {
		for _, r := range all {
			view, ok := c.Dispatch.Run(r.room.Run)
			if !ok {
				continue
			}
			standing := live[r.room.Run]
			if standing.totals = &view.Totals; r.ended() == nil {
				run := r.before // which the loop alone changes
				run.State, run.Problems = state.Underway, r.room.Ending.Problems()
				standing.underway = &run
			}
		}
	})
	if errors.Is(err, loop.ErrEnded) {
		err = nil
	}
	return live, err
}

// standing is how a run stands; nil if it is not there any more, or in none of the states. live is nil
// unless there are rooms of it.
func (s *Server) standing(
	id taskqueue.RunID, states []string, live *liveStanding, load func(taskqueue.RunID) (*state.Run, error),
) (*api.RunStanding, error) {
	wanted := func(of state.Status) bool { return len(states) == 0 || slices.Contains(states, string(of)) }
	if ended, ok := s.runs.endedAs(id); live == nil && (!ok || !wanted(ended)) {
		return nil, nil
	}
	var run *state.Run
	if live != nil && live.underway != nil {
		run = live.underway // the store may be at work for long
	} else {
		var err error
		if run, err = load(id); run == nil || err != nil {
			return nil, err
		}
	}
	standing := &api.RunStanding{Run: run, Results: publish.ShownPlace(run.Results, s.layoutOf(id))}
	standing.Totals = taskqueue.Summed(run.Totals)
	if live != nil && live.totals != nil {
		standing.Totals = *live.totals
	}
	if !wanted(run.State) {
		return nil, nil
	}
	return standing, nil
}
