package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/feed"
	"fairway/internal/server/folder"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// decision says how a run begins, from what is recorded and what is there now.
type decision uint8

const (
	runNew     decision = iota // nothing was run in this folder
	runOn                      // the same workflow and inputs: go on
	runChanged                 // something changed: begin again, reuse what is unchanged
	runDone                    // the same, and it had succeeded
)

// opened is a store with what was decided from it.
type opened struct {
	store    store.Store
	flow     *flow.Flow // as it was made or loaded, without files
	run      *state.Run
	decision decision
	rerun    rerun
	noReuse  bool     // no result of an earlier run is to be taken
	reasons  []string // why it is runChanged, one line each
	inputs   []state.Input
	now      map[string][]flow.InputFile // of inputs, by name; of open ones if all were closed before
	earlier  state.EarlierResults        // of a rehearsal
	lost     []taskqueue.LostFile        // of a rehearsal: what was stored and is lost
	notes    []string                    // of a rehearsal: servers that did not answer
	spooled  []*wire.AttemptRef          // of a rehearsal: jobs of which a pilot kept a success
	// elsewhere are inputs, by name, that hold what they held in the last run, but
	// in another file: copied, or touched.
	elsewhere map[string][]flow.InputFile
	listed    map[string]*feed.Listed // what the lists of inputs have now, by name of the input
	// gone are LFNs of open inputs, by name, that the last run had and that are there no
	// more: files, or lines of lists. What was made from them cannot be made again.
	gone map[string][]string
}

// openRecords looks at what was run before in a folder, and at the inputs as
// they are now.
func openRecords(ctx context.Context, config *RunConfig, s store.Store, find *feed.Finder) (*opened, error) {
	o := &opened{
		now: map[string][]flow.InputFile{}, elsewhere: map[string][]flow.InputFile{},
		listed: map[string]*feed.Listed{}, gone: map[string][]string{},
	}
	fresh, err := flow.New(config.Workflow)
	if err != nil {
		return nil, err
	}
	o.flow = fresh
	if s != nil {
		if o.run, err = state.LoadRun(ctx, s); err != nil {
			return nil, err
		}
		if err := o.refuseOther(config); err != nil {
			return nil, err
		}
		if o.inputs, err = state.LoadAll[state.Input](ctx, s, state.InputTable); err != nil {
			return nil, err
		}
		find.Contents.Remember(o.inputs)
	}
	for _, in := range fresh.Inputs() {
		if in.IsOpen() {
			continue
		}
		if o.now[in.Name], _, err = find.Find(ctx, in, nil); err != nil {
			return nil, err
		}
	}
	if o.rerun, err = openRerun(ctx, config.Rerun, fresh.Workflow(), s); err != nil {
		return nil, err
	}
	if s == nil {
		return o, nil
	}
	o.store = s
	if o.run != nil {
		o.findArrivals(ctx, find)
	}
	o.noReuse = config.NoReuse
	o.decide(ctx, find)
	if o.decision == runOn || o.decision == runDone {
		config.NoReuse = o.run.NoReuse // that was said when it began
	}
	return o, nil
}

// madeIn is where the files of a trace are made, from the folder of the workflow.
func madeIn(l folder.Layout) string {
	return filepath.Join(folder.StateFolder, folder.InputsName, l.ID)
}

// findArrivals finds what came to open inputs since a run that has succeeded closed
// them, and what lists have lost. One that cannot be looked at any more counts as
// unchanged.
func (o *opened) findArrivals(ctx context.Context, find *feed.Finder) {
	for _, in := range o.flow.Inputs() {
		switch {
		case in.URLList != "":
			o.readList(ctx, find, in)
		case in.Watch && o.run.State == state.Succeeded:
			o.now[in.Name], _, _ = find.Find(ctx, in, o.fed(in))
		}
	}
}

// fed are the files of an input that the last run was fed.
func (o *opened) fed(in *workflow.DeclaredInput) feed.Known {
	known := map[string]string{}
	for _, r := range o.inputs {
		if r.Input == in.Name {
			known[r.LFN] = r.PFN
		}
	}
	return func(lfn string) (pfn string, fed bool) {
		pfn, fed = known[lfn]
		return pfn, fed
	}
}

// readList reads a URL list. If it was closed, a new line that is wrong is a reason to
// run, so that it is told. The lines of one that is open are still to be fed.
func (o *opened) readList(ctx context.Context, find *feed.Finder, in *workflow.DeclaredInput) {
	var known feed.Known
	if o.run.State != state.Succeeded {
		known = o.fed(in) // which need no second look
	}
	found, err := find.ListFirst(ctx, in, known)
	if errors.Is(err, fs.ErrNotExist) {
		found, err = new(feed.Listed), nil
	}
	if err != nil {
		return
	}
	o.listed[in.Name] = found
	if known != nil {
		return
	}
	o.now[in.Name] = found.Files
	for _, line := range found.Wrong {
		fed := func(r state.Input) bool { return r.Input == in.Name && r.LFN == line.LFN }
		if !slices.ContainsFunc(o.inputs, fed) {
			o.reasons = append(o.reasons, fmt.Sprintf("the input %s has a new line, %v", in.Name, line.Err))
		}
	}
}

func (o *opened) decide(ctx context.Context, find *feed.Finder) {
	work := o.flow.Workflow()
	switch {
	case o.run == nil:
		o.decision = runNew
		return
	case work.Open() && o.run.Form == state.Form && o.run.Digest == work.Digest():
		o.decision = runOn // for ever, since its jobs are known from nowhere else
		return
	case o.run.Form != state.Form:
		o.reasons = append(o.reasons, "an earlier version of Fairway ran it, which could take a file for another one")
	case o.run.Target != work.Target():
		o.reasons = append(o.reasons, fmt.Sprintf("it is run %s, and was run %s before", upTo(work.Target()),
			upTo(o.run.Target)))
	case o.run.Refused:
		o.reasons = append(o.reasons, "the last run was refused something that it needed")
	case o.run.Digest != work.Digest():
		o.reasons = append(o.reasons, "the workflow or its parameters changed")
	}
	if o.noReuse && (!o.run.NoReuse || o.run.State == state.Succeeded) {
		o.reasons = append(o.reasons, "no result of an earlier run is to be taken")
	}
	if len(o.rerun) > 0 {
		o.reasons = append(o.reasons, fmt.Sprintf("%s is to run once more", strings.Join(o.rerun, ", ")))
	}
	for _, in := range o.flow.Inputs() {
		o.reasons = append(o.reasons, o.changes(ctx, find, in)...)
	}
	switch {
	case len(o.reasons) > 0:
		o.decision = runChanged
	case o.run.State == state.Succeeded:
		o.decision = runDone
	default:
		o.decision = runOn
	}
}

// changes compares the files of an input that were fed with those that are
// there now. Of an open input, files may have gone since, and others only count
// once it was closed.
func (o *opened) changes(ctx context.Context, find *feed.Finder, in *workflow.DeclaredInput) []string {
	before := map[string]state.Input{}
	for _, r := range o.inputs {
		if r.Input == in.Name {
			before[r.LFN] = r
		}
	}
	fed := len(before) > 0 || in.IsOpen()
	var reasons []string
	for _, file := range o.now[in.Name] {
		switch r, ok := before[file.LFN]; {
		case !fed: // its server was killed before
		case !ok:
			reasons = append(reasons, fmt.Sprintf("the input %s has a new file %s", in.Name, file.LFN))
		case r.Identity != file.Identity:
			reasons = append(reasons, fmt.Sprintf("%s changed", file.LFN))
		default:
			o.found(find, in, &r, file)
		}
		delete(before, file.LFN)
	}
	if in.IsOpen() {
		return append(reasons, o.changesOfOpen(ctx, find, in, before)...)
	}
	for _, lfn := range slices.Sorted(maps.Keys(before)) {
		reasons = append(reasons, fmt.Sprintf("%s is gone", lfn))
	}
	return reasons
}

// found takes note of a file that holds what it held, but is another one or was
// touched: those who read it are to know it again.
func (o *opened) found(find *feed.Finder, in *workflow.DeclaredInput, r *state.Input, file flow.InputFile) {
	if now := find.Contents.StampOf(file.PFN); r.Stamp != nil && now != nil && (r.PFN != file.PFN || *r.Stamp != *now) {
		o.elsewhere[in.Name] = append(o.elsewhere[in.Name], file)
	}
}

// changesOfOpen looks at those files that were fed before and are left to be
// compared. What has gone is noted, and what cannot be reached now counts as it was.
func (o *opened) changesOfOpen(
	ctx context.Context, find *feed.Finder, in *workflow.DeclaredInput, left map[string]state.Input,
) []string {
	var reasons []string
	for _, r := range o.inputs {
		if _, ok := left[r.LFN]; r.Input != in.Name || !ok {
			continue
		}
		if list := o.listed[in.Name]; list != nil && !list.Has(r.LFN) {
			o.gone[in.Name] = append(o.gone[in.Name], r.LFN)
			continue
		}
		file, err := find.Current(ctx, in, r)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			o.gone[in.Name] = append(o.gone[in.Name], r.LFN)
		case err != nil || file == nil:
		case file.Identity != r.Identity:
			reasons = append(reasons, fmt.Sprintf("%s changed", r.LFN))
		default:
			o.found(find, in, &r, *file)
		}
	}
	return reasons
}

// losses tell what becomes of what was made from files that have gone.
func (o *opened) losses() (notes []string) {
	for _, in := range o.flow.Inputs() {
		gone, them := o.gone[in.Name], "them"
		switch len(gone) {
		case 0:
			continue
		case 1:
			them = "it"
		}
		then := fmt.Sprintf("what was made from %s stays as it is; a run that begins again, as with --force STEP, does "+
			"without %s", them, them)
		if o.decision == runChanged {
			then = fmt.Sprintf("this run does without %s; results of earlier runs stay", them)
		}
		notes = append(notes, fmt.Sprintf("the input %s no longer has %s: %s", in.Name, publish.ShortList(gone), then))
	}
	return notes
}

// runID is the number of the run that is to begin or go on.
func (o *opened) runID() taskqueue.RunID {
	switch {
	case o.run == nil:
		return 1
	case o.decision == runChanged:
		return o.run.ID + 1
	}
	return o.run.ID
}

// setRun begins a run, or has it go on.
func (c *RunConfig) setRun(run taskqueue.RunID) taskqueue.Input {
	return taskqueue.SetRun{Run: taskqueue.Run{
		ID: run, Name: c.Workflow.Name, Account: c.Account, Limits: c.Workflow.Limits, Scope: c.Scope, NoReuse: c.NoReuse,
		KeepGoing: c.KeepGoing || c.Workflow.Open(),
	}}
}

// begin makes the decision durable: a new or changed run starts with the run
// record and the results of the earlier one, and nothing else.
func (o *opened) begin(ctx context.Context, config *RunConfig, logs state.Logs, log *slog.Logger) error {
	work := o.flow.Workflow()
	var records []taskqueue.Record
	var unwanted []taskqueue.AttemptID
	if o.decision == runChanged {
		var err error
		if records, unwanted, err = forget(ctx, o.store, o.rerun); err != nil {
			return err
		}
	}
	id := o.runID()
	if o.decision == runNew || o.decision == runChanged {
		gone := len(o.gone) > 0 || o.run != nil && o.run.State != state.Succeeded && o.run.InputsGone
		o.run = &state.Run{
			ID: id, Form: state.Form, Started: time.Now(), Parameters: config.Workflow.Set(), InputsGone: gone,
			NoReuse: config.NoReuse,
		}
		o.inputs = nil
	}
	o.run.Workflow, o.run.File, o.run.Source, o.run.Digest = work.Name, work.File, sourceOf(config),
		work.Digest()
	o.run.Steps, o.run.Target, o.run.Results = work.StepNames(), work.Target(), config.Results
	o.run.State, o.run.Problems, o.run.Notes, o.run.Totals = state.Underway, nil, nil, nil
	record, err := o.run.Record()
	if err != nil {
		return err
	}
	if err := o.store.Apply(ctx, append(records, record)); err != nil {
		return err
	}
	if err := logs.Remove(unwanted); err != nil {
		log.Warn("logs that nobody needs could not be removed", "error", err)
	}
	return nil
}

// forget returns the records that remove a run, and keep what a later one may
// use: its results, with what is to be known of how they were made. The logs of
// all other attempts are unwanted then. Results of what is to run once more are not
// kept.
func forget(
	ctx context.Context, s state.Source, again rerun,
) (deleted []taskqueue.Record, unwanted []taskqueue.AttemptID, err error) {
	jobs, err := state.LoadTables(ctx, s, records.Tables())
	if err != nil {
		return nil, nil, err
	}
	fresh, made, handed, err := records.Fresh(jobs)
	if err != nil {
		return nil, nil, err
	}
	intended, err := publish.Intended(ctx, s, handed)
	if err != nil {
		return nil, nil, err
	}
	provenance, unwanted, err := state.ProvenanceOf(ctx, s, made)
	if err != nil {
		return nil, nil, err
	}
	gone, err := state.Outlived(ctx, s, jobs)
	if err != nil {
		return nil, nil, err
	}
	rest, err := state.LoadTables(ctx, s, []string{
		flow.TableRun, flow.TableLog, state.RunTable, state.InputTable, state.AttemptTable, state.HostTable, state.CacheTable,
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range rest {
		rest[i].Body = nil
	}
	dropped, err := again.drop(jobs)
	return slices.Concat(fresh, rest, gone, provenance, dropped, intended), unwanted, err
}

// OtherWorkflowError says that a folder holds the run of another workflow, whose
// results a run of this one would remove.
type OtherWorkflowError struct {
	Folder       string
	There, Asked string // names of workflows
	File         string // of the one that is there, as it was named
}

func (e *OtherWorkflowError) Error() string {
	return fmt.Sprintf("%s holds the run of the workflow %s (%s); a run of %s would remove its results", e.Folder, e.There,
		e.File, e.Asked)
}

// refuseOther refuses a workflow of another name, unless the same file was given
// another name for it.
func (o *opened) refuseOther(config *RunConfig) error {
	asked := config.Workflow.Name
	if o.run == nil || o.run.Workflow == asked || o.run.Source == sourceOf(config) {
		return nil
	}
	return &OtherWorkflowError{Folder: config.Folder, There: o.run.Workflow, Asked: asked, File: o.run.File}
}

// sourceOf is the workflow's file as it is found from the folder of the state,
// wherever both are moved together.
func sourceOf(config *RunConfig) string {
	file, err := filepath.Abs(config.Workflow.File)
	if err != nil {
		return config.Workflow.File
	}
	folder := config.Folder
	for _, path := range []*string{&file, &folder} {
		if resolved, err := filepath.EvalSymlinks(*path); err == nil {
			*path = resolved
		}
	}
	if relative, err := filepath.Rel(folder, file); err == nil {
		return relative
	}
	return file
}
