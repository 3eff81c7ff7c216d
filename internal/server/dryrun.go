package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/api"
	"fairway/internal/server/convert"
	"fairway/internal/server/feed"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Plan says what Run would do.
type Plan struct {
	// Begins is how the run would begin: "new", "on" (where the last one ended),
	// "again" (something changed), or "done" (nothing is left to do).
	Begins  string
	Reasons []string // of "again", one line each
	Notes   []string // what becomes of results made from files that have gone
	Jobs    []PlannedJob
	// Removes are the results of earlier runs that would be removed when the run
	// has succeeded. While there is More it is empty, and a note says how many may go.
	Removes []string
	// More says that further jobs will be made when it is known what the planned
	// ones write, or when further files come.
	More bool
}

// PlannedJob is a job with what would become of it.
type PlannedJob struct {
	Name string
	Step string
	Runs bool   // it would be executed
	Why  string // or why not, for a person; one reason a line

	Reads     []PlannedFile
	Writes    []string // LFNs, or patterns
	MilliCPUs int64    // that it asks for; 0: it does not say
	Priority  int
}

// PlannedFile is a file that a job reads.
type PlannedFile struct {
	LFN  string
	Size int64 // bytes; 0 where it is not known
}

var beginnings = [...]string{runNew: "new", runOn: "on", runChanged: "again", runDone: "done"}

// DryRun tells what Run would do with the same Config. It changes nothing, and
// needs neither System nor Site. The inputs are looked at as for a run, and the
// cores are stepped as the loop does, without anything being kept or let out.
func DryRun(ctx context.Context, config Config) (*Plan, error) {
	config = config.withDefaults()
	dir, err := filepath.Abs(config.Folder)
	if err != nil {
		return nil, err
	}
	if err := checkTerm(dir); err != nil {
		return nil, err
	}
	if err := folder.CheckFree(dir); err != nil {
		return nil, err
	}
	folders, err := folder.Of(dir)
	if err != nil {
		return nil, err
	}
	records, err := folder.OpenRecords(ctx, folders.State)
	if errors.Is(err, fs.ErrNotExist) {
		records, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	if records != nil {
		defer func() { _ = records.Close() }()
	}
	find, err := config.finderIn(dir, elements.New(folders.Roots(), config.Sched.Sleep))
	if err != nil {
		return nil, err
	}
	find.Dry, find.Made, find.Enumerated = true, madeIn(folders), config.Enumerated
	o, err := openRecords(ctx, &config.RunConfig, records, find)
	if err != nil {
		return nil, err
	}
	c, err := o.rehearse(ctx, &config, find, folders.Roots())
	if err != nil {
		return nil, err
	}
	if config.Spooled != nil && o.decision == runOn { // else the jobs are others
		o.spooled = config.Spooled(folders.Sandbox)
	}
	p := o.plan(c)
	if records != nil && !config.KeepResults && config.Workflow.Target() == "" && !o.keepsResults() {
		p.Removes, err = publish.Removals(ctx, records, folders, c)
		if config.Results != "" {
			p.Removes, err = publish.RemovalsAt(ctx, records, folders, config.Results, c)
		}
		if p.More && len(p.Removes) > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("results of earlier runs that no job of this list makes: %d; which of them "+
				"go is known when %s", len(p.Removes), allKnown(c.Flow)))
			p.Removes = nil
		}
	}
	return p, err
}

// allKnown says when it is known of all jobs which there are.
func allKnown(f *flow.Flow) string {
	if slices.ContainsFunc(f.Inputs(), func(in *workflow.DeclaredInput) bool { return !f.Closed(in.Name) }) {
		return "the inputs are closed"
	}
	return "all jobs are known"
}

func (o *opened) rehearse(
	ctx context.Context, config *Config, find *feed.Finder, at storage.Roots,
) (*state.Cores, error) {
	memory := &rehearsal{store: o.store}
	if o.decision == runChanged {
		fresh, _, err := forget(ctx, o.store, o.rerun)
		if err != nil {
			return nil, err
		}
		memory.apply(fresh)
	}
	of := []state.RunOf{{Run: o.runID(), Workflow: config.Workflow}}
	loaded, err := state.Load(ctx, memory, of, config.Dispatch, false)
	if err != nil {
		return nil, err
	}
	if o.earlier, err = state.LoadEarlierResults(ctx, memory); err != nil {
		return nil, err
	}
	c := &loaded.Runs[0]
	r := loop.Rehearse(*c, config.Sched, config.Log)
	defer r.Close()
	begin := &loop.Request{Flow: []flow.Input{flow.Tick{}}, Dispatch: []taskqueue.Input{config.setRun(c.Run)}}
	var mu sync.Mutex // guards o.notes
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(o.notes, text) {
			o.notes = append(o.notes, text)
		}
	}
	if o.lost = publish.LostFiles(ctx, at, slices.Collect(c.Dispatch.Stored), note); len(o.lost) > 0 {
		begin.Dispatch = append(begin.Dispatch, taskqueue.LoseFiles{Files: o.lost})
	}
	if o.decision == runOn {
		begin.Dispatch = append(begin.Dispatch, o.run.DeferredInputs()...)
	}
	_ = r.Take(begin) // what is refused is so by the run, too
	for _, in := range o.flow.Inputs() {
		files, closed := o.now[in.Name], true
		if in.IsOpen() {
			if files, _, err = find.Find(ctx, in, o.fed(in)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			closed = in.Close == workflow.CloseRule{}
		}
		arrival := &loop.Request{Flow: []flow.Input{flow.Arrived{Input: in.Name, Files: files}}}
		if closed {
			arrival.Flow = append(arrival.Flow, flow.Closed{Input: in.Name})
		}
		if err := r.Take(arrival); err != nil {
			return nil, err
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if refused := c.Flow.Refused(); len(refused) > 0 {
		return nil, fmt.Errorf("the run could not be finished: %s", strings.Join(refused, "; "))
	}
	return c, nil
}

// keepsResults reports whether nothing is removed, since inputs have gone.
func (o *opened) keepsResults() bool {
	return len(o.gone) > 0 || o.run != nil && o.run.InputsGone &&
		(o.decision == runOn || o.decision == runDone || o.run.State != state.Succeeded)
}

func (o *opened) plan(c *state.Cores) *Plan {
	p := &Plan{
		Begins: beginnings[o.decision], Reasons: o.reasons, Notes: append(o.losses(), o.notes...), More: !c.Tally.Finished,
	}
	outlook := outlook{core: c.Dispatch}
	outlook.reuse, outlook.again = c.Dispatch.Foresee()
	temporary := 0
	for job := range c.Dispatch.Jobs(c.Run, 0) {
		detail, _ := c.Dispatch.Detail(job.ID)
		planned := o.planned(&outlook, &detail)
		if planned.Runs && slices.ContainsFunc(detail.Writes, func(w taskqueue.FileView) bool { return w.Temporary }) {
			temporary++
		}
		if planned.Runs && o.decision == runDone {
			p.Begins = beginnings[runOn] // what it had made is lost
		}
		p.Jobs = append(p.Jobs, planned)
	}
	if temporary > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("jobs of this list whose outputs are temporary, and would be removed when "+
			"all that read them are done: %d", temporary))
	}
	return p
}

// outlook is the TaskQueue after the rehearsal, with the jobs that will be reused
// when their turn comes, and those that run again since their outputs were lost.
type outlook struct {
	core         *dispatch.Core
	reuse, again map[taskqueue.JobID]bool
}

func (o *outlook) runs(job taskqueue.JobID, state taskqueue.State) bool {
	return o.again[job] || state != taskqueue.Done && !o.reuse[job]
}

func (o *opened) planned(outlook *outlook, job *taskqueue.JobDetail) PlannedJob {
	p := PlannedJob{
		Name: job.Name, Step: job.Step, Runs: outlook.runs(job.ID, job.State),
		MilliCPUs: job.Needs.MilliCPUs, Priority: job.Priority,
	}
	for i := range job.Reads {
		p.Reads = append(p.Reads, PlannedFile{job.Reads[i].File.LFN, job.Reads[i].Size})
	}
	for i := range job.Writes {
		p.Writes = append(p.Writes, job.Writes[i].File.LFN)
	}
	switch {
	case p.Runs &&
		slices.ContainsFunc(o.spooled, func(a *wire.AttemptRef) bool { return convert.JobFromWire(a) == job.ID }):
		p.Runs, p.Why = false, "it has run: a pilot kept the result when there was no server"
	case !p.Runs && (job.Reused || outlook.reuse[job.ID]):
		p.Why = "its command and inputs are as in an earlier run"
	case !p.Runs:
		p.Why = "it is done"
	case outlook.again[job.ID], job.Committed != 0 && job.State != taskqueue.Failed && job.State != taskqueue.Cancelled:
		p.Why = o.whyAgain(job)
	case job.State == taskqueue.Failed:
		p.Why = "it failed: " + job.Reason
	case job.State == taskqueue.Cancelled:
		p.Runs, p.Why = false, "it was cancelled"
	case o.decision == runNew:
		p.Why = "it was never run"
	case o.rerun.chosen(job.Step, job.Name):
		p.Why = "it is to run once more"
	default:
		p.Why = outlook.why(job, o.earlier[job.Name])
		if p.Why == unkept && o.hasLost(job) {
			p.Why = fileLost
		}
	}
	return p
}

const (
	fileLost = "a stored file that it had written is lost"
	unkept   = "its earlier result is kept no more"
)

// hasLost reports whether a file that the job writes was stored and is lost.
func (o *opened) hasLost(job *taskqueue.JobDetail) bool {
	return slices.ContainsFunc(job.Writes, func(w taskqueue.FileView) bool {
		return slices.ContainsFunc(o.lost, func(l taskqueue.LostFile) bool { return l.File.LFN == w.File.LFN })
	})
}

func (o *opened) whyAgain(job *taskqueue.JobDetail) string {
	if o.hasLost(job) {
		return fileLost
	}
	return "what it wrote is in caches only: it runs unless a pilot still has that"
}

func (o *outlook) why(job *taskqueue.JobDetail, earlier *wire.Provenance) string {
	var written []string // by jobs that run
	for i := range job.Reads {
		file := &job.Reads[i]
		if writer, ok := o.core.Job(file.Writer); ok && o.runs(writer.ID, writer.State) {
			written = append(written, fmt.Sprintf("%s is written by %s, which runs", file.File.LFN, writer.Name))
			file.Mark = "" // told already
		}
	}
	var reasons []string
	if payload := new(wire.Payload); earlier != nil && proto.Unmarshal(job.Payload, payload) == nil {
		reasons = api.ChangesSince(earlier, job, payload)
	}
	if len(written) > 1 {
		written = []string{fmt.Sprintf("%s; and %s written by jobs that run", written[0], moreInputs(len(written)-1))}
	}
	reasons = append(reasons, written...)
	switch {
	case len(reasons) > 0:
		return strings.Join(reasons, "\n")
	case earlier == nil:
		return "new"
	default:
		return unkept
	}
}

func moreInputs(n int) string {
	if n == 1 {
		return "another input"
	}
	return fmt.Sprintf("%d more inputs", n)
}

type recordName struct {
	table, key string
	run        taskqueue.RunID
}

func nameOf(r taskqueue.Record) recordName { return recordName{r.Table, r.Key, r.Run} }

// rehearsal is a store with changes that are never written to it.
type rehearsal struct {
	store   store.Store // nil: empty
	changed map[recordName]taskqueue.Record
}

func (r *rehearsal) apply(records []taskqueue.Record) {
	r.changed = make(map[recordName]taskqueue.Record, len(records))
	for _, record := range records {
		r.changed[nameOf(record)] = record
	}
}

// Load is part of store.Store.
func (r *rehearsal) Load(ctx context.Context, table string) ([]taskqueue.Record, error) {
	if r.store == nil {
		return nil, nil
	}
	all, err := r.store.Load(ctx, table)
	kept := all[:0]
	for _, record := range all {
		if _, ok := r.changed[nameOf(record)]; !ok {
			kept = append(kept, record)
		}
	}
	for _, record := range r.changed {
		if record.Table == table && record.Body != nil {
			kept = append(kept, record)
		}
	}
	slices.SortFunc(kept, func(a, b taskqueue.Record) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), strings.Compare(a.Key, b.Key))
	})
	return kept, err
}

// Each is part of store.Store.
func (r *rehearsal) Each(ctx context.Context, table string, take func(taskqueue.Record) error) error {
	records, err := r.Load(ctx, table)
	for i := 0; i < len(records) && err == nil; i++ {
		err = take(records[i])
	}
	return err
}
