package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"fairway/internal/dispatch"
	"fairway/internal/store"
	"fairway/internal/wire"
)

// view is the state that the API shows where no server runs: the records of
// the last run, loaded once.
type view struct {
	folder string
	run    *runRecord

	mu    sync.Mutex // guards cores
	cores cores
}

// openView loads the records of a workflow folder without changing them. It
// fails with an error that wraps fs.ErrNotExist where nothing was run.
func openView(ctx context.Context, folder string) (*view, error) {
	path := filepath.Join(folder, StateFolder, StoreFile)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("nothing was run in %s: %w", folder, err)
	}
	records, err := store.OpenSQLite(path, store.ReadOnly)
	if err != nil {
		return nil, err
	}
	v, err := loadView(ctx, records)
	if closing := records.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	v.folder = folder
	return v, nil
}

func loadView(ctx context.Context, records store.Store) (*view, error) {
	run, err := loadRun(ctx, records)
	if err != nil {
		return nil, err
	}
	if run == nil {
		run = &runRecord{State: runStopped}
	}
	jobs, err := loadTables(ctx, records, dispatch.Tables())
	if err != nil {
		return nil, err
	}
	core, _, err := dispatch.Load(dispatch.Config{}, jobs)
	if err != nil {
		return nil, fmt.Errorf("loading the jobs: %w", err)
	}
	for _, in := range run.wishes() {
		_, _ = core.Step(now(), in) // what is refused will be so by the next run, too
	}
	counts, err := loadTally(ctx, records, run.Workflow, run.Steps)
	if err != nil {
		return nil, err
	}
	return &view{run: run, cores: cores{dispatch: core, tally: counts}}, nil
}

func (v *view) look(_ context.Context, ask func(*cores)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	ask(&v.cores)
	return nil
}

func (v *view) report(r *wire.ProgressReport) {
	r.Ended = true
	r.Succeeded = v.run.State == runSucceeded
	r.Problems, r.Notes = v.run.Problems, v.run.Notes
	if v.run.State == runUnderway {
		r.Problems = []string{"the run was cut short; run it again to go on"}
	}
	r.PilotsBusy, r.PilotsIdle, r.PilotsInactive = 0, 0, 0
	r.Summary.WallSeconds = v.run.Seconds
	r.Summary.WaitingSeconds = v.run.Waiting
	r.Summary.Pilots = v.run.Pilots
	r.Summary.Results = filepath.Join(v.folder, ResultsFolder)
}

func (v *view) changes() <-chan struct{} { return nil }
