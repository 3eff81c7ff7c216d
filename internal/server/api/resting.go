package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"

	"connectrpc.com/connect"

	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/server/term"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// Resting is the state that the API shows where no server runs: the records of
// the last run. What a question needs of them is read when it comes, and all of
// them once at the most.
type Resting struct {
	folders folder.Layout
	records string // path of the store
	run     *state.Run

	mu    sync.Mutex   // guards what follows: nil until a question needs it
	cores *state.Cores // their Tally is of the question
	tally *state.Tally
	first taskqueue.JobID // that a question was about; of a second one all is counted
}

// OpenResting looks at the records of a workflow folder without changing them. It
// fails with an error that wraps fs.ErrNotExist where nothing was run.
func OpenResting(ctx context.Context, workflow string) (*Resting, error) {
	folders, err := folder.Of(workflow)
	if err != nil {
		return nil, err
	}
	return openResting(ctx, folders, filepath.Join(folders.State, folder.StoreFile))
}

func openResting(ctx context.Context, folders folder.Layout, path string) (*Resting, error) {
	v := &Resting{folders: folders, records: path}
	err := v.reading(func(records store.Store) (err error) {
		v.run, err = state.LoadEndedRun(ctx, records)
		return err
	})
	return v, err
}

// Archived is a run of a lasting server that is retired, as the records of its archive show it.
type Archived struct {
	*Resting
	records store.Store // of the server
}

// OpenArchived looks at the archive of a run; records is the store of its server. It fails with an
// error that wraps fs.ErrNotExist where there is none.
func OpenArchived(ctx context.Context, folders folder.Layout, path string, records store.Store) (Archived, error) {
	v, err := openResting(ctx, folders, path)
	return Archived{v, records}, err
}

// Provenance is part of Run. Of results by the name of a job alone those of others might be told.
func (v Archived) Provenance(ctx context.Context, job, key string) (*wire.Provenance, error) {
	if key == "" {
		return nil, nil
	}
	return state.LoadProvenance(ctx, v.records, job, key, state.EveryResult)
}

// Change is part of Run: nothing of the run changes any more.
func (v Archived) Change(context.Context, *loop.Request) error {
	return errRetired(v.ID())
}

// errRetired says that nothing of a run of a lasting server changes any more.
func errRetired(run taskqueue.RunID) error {
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("run %d has ended; submit its workflow again to "+
		"have it run once more, which takes its results where nothing has changed", run))
}

// reading opens the records for a moment: no server can begin meanwhile.
func (v *Resting) reading(read func(store.Store) error) error {
	path := v.records
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("nothing was run in %s: %w", v.folders.Workflow, err)
	}
	records, err := store.OpenSQLite(path, store.ReadOnly)
	if err != nil {
		return err
	}
	return errors.Join(read(records), records.Close())
}

// ID is part of Run.
func (v *Resting) ID() taskqueue.RunID { return v.run.ID }

// Steps is part of Run.
func (v *Resting) Steps() []string { return v.run.Steps }

// Query is part of Run.
func (v *Resting) Query(ctx context.Context, job taskqueue.JobID, ask func(*state.Cores)) error {
	return v.query(ctx, ask, func(records store.Store) (*state.Tally, error) {
		switch {
		case job == 0:
			return nil, nil
		case job == AllJobs || v.first != 0 && v.first != job:
			return v.countAll(ctx, records)
		}
		v.first = job
		pilots, err := records.Load(ctx, state.HostTable)
		if err != nil {
			return nil, err
		}
		return state.LoadTallyOf(ctx, records, job, state.LoadHosts(pilots))
	})
}

// AllJobs has Query count the attempts of all jobs.
const AllJobs = taskqueue.JobID(math.MaxUint64)

// QueryAll is part of Run.
func (v *Resting) QueryAll(ctx context.Context, ask func(*state.Cores)) error {
	return v.Query(ctx, AllJobs, ask)
}

// QueryTally is part of Run.
func (v *Resting) QueryTally(ctx context.Context, ask func(*state.Tally)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.reading(func(records store.Store) error {
		_, err := v.countAll(ctx, records)
		return err
	})
	if err == nil {
		ask(v.tally)
	}
	return err
}

// countAll returns the Tally that knows all. The caller holds the mutex.
func (v *Resting) countAll(ctx context.Context, records store.Store) (_ *state.Tally, err error) {
	if v.tally == nil {
		v.tally, err = state.LoadEndedTally(ctx, records, v.run)
	}
	return v.tally, err
}

func (v *Resting) query(
	ctx context.Context, ask func(*state.Cores), count func(store.Store) (*state.Tally, error),
) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cores != nil && v.tally != nil { // nothing is left to read
		v.cores.Tally = v.tally
		ask(v.cores)
		return nil
	}
	err := v.reading(func(records store.Store) (err error) {
		if v.cores == nil {
			if v.cores, err = state.LoadEnded(ctx, records, v.run); err != nil {
				return err
			}
		}
		v.cores.Tally, err = count(records)
		return err
	})
	if err == nil {
		ask(v.cores)
	}
	return err
}

// List is part of Run. It reads the records of the listed jobs alone, where those tell how the jobs
// stand.
func (v *Resting) List(ctx context.Context, r *wire.ListJobsRequest) (response *wire.ListJobsResponse, err error) {
	if v.run.Totals == nil || len(v.run.Deferred) > 0 {
		return nil, nil
	}
	err = v.reading(func(records store.Store) (err error) {
		l := &listing{records: records, run: v.run.ID, request: r, response: listOfTotals(v.run.Totals, r)}
		response, err = l.all(ctx)
		return err
	})
	return response, err
}

// Provenance is part of Run.
func (v *Resting) Provenance(ctx context.Context, job, key string) (p *wire.Provenance, err error) {
	err = v.reading(func(records store.Store) (err error) {
		p, err = state.LoadProvenance(ctx, records, job, key, state.EveryResult)
		return err
	})
	return p, err
}

// CutShort is the problem of a run whose server ended before it.
const CutShort = "the run was cut short; run it again to go on"

// Report is part of Run.
func (v *Resting) Report(r *wire.ProgressReport, _ *state.Cores) {
	r.Ended = true
	r.Succeeded = v.run.State == state.Succeeded
	r.Problems, r.Notes = v.run.Problems, v.run.Notes
	if v.run.State == state.Underway {
		r.Problems = []string{CutShort}
	}
	r.PilotsBusy, r.PilotsIdle, r.PilotsInactive, r.PilotsSilent, r.RunningUnheard = 0, 0, 0, 0, 0
	r.Summary.WallSeconds = v.run.Seconds
	r.Summary.WaitingSeconds = v.run.Waiting
	r.Summary.Pilots = v.run.Pilots
	r.Summary.Removed, r.Summary.BytesRemoved = v.run.Removed, v.run.BytesRemoved
	r.Summary.Results = publish.ShownPlace(v.run.Results, v.folders)
}

// Changes is part of Run.
func (v *Resting) Changes() <-chan struct{} { return nil }

// Ended returns a channel that is closed.
func (v *Resting) Ended() <-chan struct{} { return closedChannel }

var closedChannel = func() <-chan struct{} { ch := make(chan struct{}); close(ch); return ch }()

// Change is part of Run: it defers a request to the next run, and keeps other
// processes out meanwhile. The request is shown how the run will stand then.
func (v *Resting) Change(ctx context.Context, q *loop.Request) (err error) {
	unclean := false
	if term.Used(v.folders.State) {
		t, held := v.takeTerm(ctx)
		if held != nil {
			return held
		}
		defer func() { err = errors.Join(err, t.End()) }()
		unclean = t.Unclean
	}
	lock, err := folder.LockState(v.folders.State)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	records, err := folder.OpenStore(v.folders.State, unclean)
	if err != nil {
		return err
	}
	defer func() { _ = records.Close() }()
	run, err := state.LoadEndedRun(ctx, records)
	if err != nil {
		return err
	}
	c, err := state.LoadEnded(ctx, records, run)
	if err != nil {
		return err
	}
	if c.Tally, err = state.LoadEndedTally(ctx, records, run); err != nil {
		return err
	}
	if err := q.Prepare(c, q); err != nil {
		return err
	}
	for _, in := range q.Dispatch {
		if _, err := c.Dispatch.Step(state.Now(), in); err != nil {
			return err
		}
		run.Deferred = append(run.Deferred, state.Defer(in))
	}
	q.Ask(c)
	record, err := run.Record()
	if err != nil {
		return err
	}
	return records.Apply(ctx, []taskqueue.Record{record})
}

// takeTerm keeps servers on other machines out, where the lock may tell them nothing.
func (v *Resting) takeTerm(ctx context.Context) (*term.Term, error) {
	self := term.Here(v.folders.ID)
	before, err := term.Await(ctx, sched.Default(), v.folders.State, self.State, self.Machine, "")
	if err != nil {
		return nil, err
	}
	return term.Take(v.folders.State, self, before)
}
