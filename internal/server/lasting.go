package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/server/api"
	"fairway/internal/server/convert"
	"fairway/internal/server/feed"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
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
	Account    dispatch.Account  `json:"account,omitzero"`
}

// parse reads the workflow that was submitted.
func (b *submission) parse() (*flow.Workflow, error) {
	workflow, err := flow.Parse(b.File, b.Text)
	if err == nil {
		workflow, err = workflow.With(b.Parameters)
	}
	if err == nil && b.Until != "" {
		workflow, err = workflow.Until(b.Until)
	}
	return workflow, err
}

// configOf is that of a run: the server's, with what was submitted.
func (s *Server) configOf(b *submission, workflow *flow.Workflow) Config {
	c := s.config
	c.Workflow, c.Folder, c.KeepGoing, c.Results, c.Account = workflow, b.Folder, b.KeepGoing, b.Results, b.Account
	return c
}

// finderOf finds the inputs of a run. The folder is not that of the state, so files have absolute
// names.
func (s *Server) finderOf(b *submission, run dispatch.RunID) *feed.Finder {
	find := feed.NewFinder(b.Folder, s.config.tellingSlow(s.element))
	find.State, find.Run, find.Apart = s.folders.ID, run, true
	return find
}

// layoutOf are the folders of a run: those of the state, with a results folder of its own.
func (s *Server) layoutOf(run dispatch.RunID) folder.Layout {
	l := s.folders
	l.Results = filepath.Join(l.Results, strconv.FormatUint(uint64(run), 10))
	return l
}

// uploadsOf is the folder of the uploaded files of a run.
func (s *Server) uploadsOf(run dispatch.RunID) string {
	return filepath.Join(s.folders.State, folder.UploadsName, strconv.FormatUint(uint64(run), 10))
}

// openSubmitted has the runs go on that earlier servers have left.
func (s *Server) openSubmitted(ctx context.Context) error {
	recorded, err := state.LoadRuns(ctx, s.records)
	if err != nil {
		return err
	}
	last, err := state.LoadOf[dispatch.RunID](ctx, s.records, lastTable, 0)
	if err != nil {
		return err
	}
	for _, id := range last {
		s.runs.last = id
	}
	for _, run := range recorded {
		s.runs.last = max(s.runs.last, run.ID)
		if run.Key != "" {
			s.runs.keys[run.Key] = run
		}
		if run.Archived {
			s.sharing.keep(run.Account, run.Stored)
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

// reopen makes the rooms of a run that is recorded.
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
	find := s.finderOf(&all[0], run.ID)
	o := &opened{store: s.records, run: run, decision: runOn, now: map[string][]flow.InputFile{}}
	if o.inputs, err = state.LoadOf[state.Input](ctx, s.records, state.InputTable, run.ID); err != nil {
		return nil, err
	}
	find.Contents.Remember(o.inputs)
	if o.flow, err = flow.New(workflow); err != nil {
		return nil, err
	}
	r := s.newRunAt(s.configOf(&all[0], workflow), o, find, s.layoutOf(run.ID), run.ID)
	if run.State != state.Underway {
		r.room.Ending.Rest()
		r.concluded.Store(&Outcome{Succeeded: run.State == state.Succeeded, Stopped: run.State == state.Stopped,
			Problems: run.Problems, Notes: run.Notes})
		if run.State != state.Succeeded {
			r.tellPutAway()
		}
	} else if err := o.findClosed(ctx, find); err != nil {
		r.room.Ending.Note(fmt.Sprintf("an input could not be looked at when the server began again: %v", err))
	}
	return r, r.openResults(ctx)
}

// findClosed finds the files of closed inputs that were not fed before the server ended.
func (o *opened) findClosed(ctx context.Context, find *feed.Finder) (err error) {
	for _, in := range o.flow.Inputs() {
		fed := slices.ContainsFunc(o.inputs, func(r state.Input) bool { return r.Input == in.Name })
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
) (id dispatch.RunID, known bool, err error) {
	b := &submission{
		Key: w.Key, File: w.File, Text: w.Text, Folder: w.Folder, Parameters: w.Parameters, Until: w.Until,
		KeepGoing: w.KeepGoing, Results: w.Results,
	}
	workflow, err := b.parse()
	if err != nil {
		return 0, false, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var limits map[string]int64
	if b.Account, limits, err = s.accountOf(ctx, w); err != nil {
		return 0, false, err
	}
	if s.config.Check != nil {
		if err := s.config.Check(workflow, limits); err != nil {
			return 0, false, connect.NewError(connect.CodeInvalidArgument, err)
		}
	}
	// One submission after the other: numbers are given in the order of the loop.
	s.runs.submitting.Lock()
	defer s.runs.submitting.Unlock()
	if b.Key != "" {
		if run := s.runs.keys[b.Key]; run != nil && run.Digest != workflow.Digest() {
			return 0, false, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("the key %q is that of run %d, which is of "+
				"another workflow, or has other parameters; give this submission a key of its own", b.Key, run.ID))
		} else if run != nil {
			return run.ID, true, nil
		}
	}
	id = s.runs.last + 1
	if b.Folder == "" {
		b.Folder = s.uploadsOf(id)
		if err := writeUploads(b.Folder, w.Uploads); err != nil {
			return 0, false, err
		}
	}
	if err := s.beginRun(ctx, id, b, workflow); err != nil {
		if w.Folder == "" {
			_ = os.RemoveAll(b.Folder)
		}
		return 0, false, err
	}
	s.runs.last = id
	return id, false, nil
}

// beginRun has the loop begin a run. When it returns without an error, the run is durable.
func (s *Server) beginRun(ctx context.Context, id dispatch.RunID, b *submission, workflow *flow.Workflow) error {
	invalid := func(err error) error { return connect.NewError(connect.CodeInvalidArgument, err) }
	fresh, err := flow.New(workflow)
	if err != nil {
		return invalid(err)
	}
	find := s.finderOf(b, id)
	o := &opened{store: s.records, flow: fresh, decision: runOn, now: map[string][]flow.InputFile{}}
	for _, in := range fresh.Inputs() {
		if in.IsOpen() {
			continue
		}
		if o.now[in.Name], _, err = find.Find(ctx, in, nil); err != nil {
			return invalid(err)
		}
	}
	o.run = &state.Run{
		ID: id, Form: state.Form, Started: time.Now(), Parameters: workflow.Set(), Workflow: workflow.Name, File: b.File,
		Source: b.Folder, Digest: workflow.Digest(), Steps: workflow.Steps(), Target: workflow.Target(), Results: b.Results,
		State: state.Underway, Key: b.Key, Account: b.Account,
	}
	r := s.newRunAt(s.configOf(b, workflow), o, find, s.layoutOf(id), id)
	r.begun = true
	if err := publish.CheckWritable(b.Results); err != nil {
		return invalid(fmt.Errorf("results: %w", err))
	}
	if err := r.openResults(ctx); err != nil {
		return invalid(fmt.Errorf("results: %w", err))
	}
	if err := r.ready(ctx); err != nil {
		return err
	}
	run, err := o.run.Record()
	if err != nil {
		return err
	}
	submitted, err := state.NewRecord(submissionTable, id, submissionKey, b)
	if err != nil {
		return err
	}
	err = s.inbox.Begin(context.WithoutCancel(ctx), r.room, &loop.Request{
		Records: []dispatch.Record{run, submitted}, Dispatch: []dispatch.Input{r.config.setRun(id)},
		Flow: []flow.Input{flow.Tick{}},
	})
	if err != nil {
		return err
	}
	if b.Key != "" {
		s.runs.keys[b.Key] = o.run
	}
	s.runs.add(r)
	return nil
}

// writeUploads makes the folder of a run with the files that came with it.
func writeUploads(at string, files []api.Upload) error {
	if err := os.RemoveAll(at); err != nil { // of a submission that was not acknowledged
		return err
	}
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
			err = s.records.Apply(context.Background(), []dispatch.Record{record})
		}
		if err != nil {
			s.log.Warn("how long a run took could not be recorded", "run", r.room.Run, "error", err)
		}
	}
	gone, kept := oldest(s.loop.Dispatch.Unused(), UnusedResultLimit)
	for _, result := range kept {
		needed.Add(result.PFNs...)
	}
	err := s.records.Apply(context.Background(), convert.Each(gone, func(r dispatch.UnusedResult) dispatch.Record {
		return r.Record
	}))
	if err == nil {
		err = s.storage.Sweep(context.Background(), needed)
	}
	if err != nil {
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
	if r := s.runs.get(dispatch.RunID(number)); r != nil {
		return r, r, nil
	}
	archived, err := s.openArchive(ctx, dispatch.RunID(number))
	if err != nil {
		return nil, nil, api.NoRun(number, "`fairway runs` lists those that there are")
	}
	return archived, nil, nil
}

// QueryFleet is part of api.Fleet.
func (s *Server) QueryFleet(ctx context.Context, ask func(*dispatch.Core)) error {
	return s.inbox.Query(ctx, func(c *state.Cores) { ask(c.Dispatch) })
}

// PilotsWaiting is part of api.Fleet.
func (s *Server) PilotsWaiting() []string { return s.pilots.Waiting() }

// openArchive shows a run that is retired.
func (s *Server) openArchive(ctx context.Context, id dispatch.RunID) (api.Archived, error) {
	return api.OpenArchived(ctx, s.layoutOf(id), s.archiveOf(id), s.records)
}

// ListRuns is part of api.Lasting: the newest first.
func (s *Server) ListRuns(ctx context.Context) ([]api.RunStanding, error) {
	recorded, err := state.LoadRuns(ctx, s.records)
	if err != nil {
		return nil, err
	}
	all := make([]api.RunStanding, len(recorded))
	for i, run := range recorded {
		all[i] = api.RunStanding{Run: run, Results: publish.ShownPlace(run.Results, s.layoutOf(run.ID))}
		all[i].Totals = dispatch.Summed(run.Totals)
		if r := s.runs.get(run.ID); r != nil {
			err := r.inbox.Query(ctx, func(c *state.Cores) {
				view, _ := c.Dispatch.Run(run.ID)
				all[i].Totals = view.Totals
				if r.ended() == nil {
					run.State, run.Problems = state.Underway, r.room.Ending.Problems()
				}
			})
			if err != nil && !errors.Is(err, loop.ErrEnded) {
				return nil, err
			}
		}
	}
	slices.SortFunc(all, func(a, b api.RunStanding) int { return cmp.Compare(b.Run.ID, a.Run.ID) })
	return all, nil
}
