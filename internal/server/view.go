package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/store"
	"fairway/internal/wire"
)

// view is the state that the API shows where no server runs: the records of
// the last run. What a question needs of them is read when it comes, and all of
// them once at the most.
type view struct {
	folders folder.Layout
	run     *state.Run

	mu    sync.Mutex   // guards cores
	cores *state.Cores // nil until a question needs them
}

// openView looks at the records of a workflow folder without changing them. It
// fails with an error that wraps fs.ErrNotExist where nothing was run.
func openView(ctx context.Context, workflow string) (*view, error) {
	folders, err := folder.Of(workflow)
	if err != nil {
		return nil, err
	}
	v := &view{folders: folders}
	err = v.reading(func(records store.Store) (err error) {
		v.run, err = state.LoadEndedRun(ctx, records)
		return err
	})
	return v, err
}

// reading opens the records for a moment: no server can begin meanwhile.
func (v *view) reading(read func(store.Store) error) error {
	path := filepath.Join(v.folders.State, folder.StoreFile)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("nothing was run in %s: %w", v.folders.Workflow, err)
	}
	records, err := store.OpenSQLite(path, store.ReadOnly)
	if err != nil {
		return err
	}
	return errors.Join(read(records), records.Close())
}

func (v *view) look(ctx context.Context, ask func(*state.Cores)) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cores == nil {
		err := v.reading(func(records store.Store) (err error) {
			v.cores, err = state.LoadEnded(ctx, records, v.run)
			return err
		})
		if err != nil {
			return err
		}
	}
	ask(v.cores)
	return nil
}

// list reads the records of the listed jobs alone, where those tell how the jobs
// stand.
func (v *view) list(ctx context.Context, r *wire.ListJobsRequest) (response *wire.ListJobsResponse, err error) {
	if v.run.Totals == nil || len(v.run.Deferred) > 0 {
		return nil, nil
	}
	err = v.reading(func(records store.Store) (err error) {
		l := &listing{records: records, request: r, response: listOfTotals(v.run.Totals, r)}
		response, err = l.all(ctx)
		return err
	})
	return response, err
}

func (v *view) provenance(ctx context.Context, job, key string) (p *wire.Provenance, err error) {
	err = v.reading(func(records store.Store) (err error) {
		p, err = state.LoadProvenance(ctx, records, job, key)
		return err
	})
	return p, err
}

func (v *view) report(r *wire.ProgressReport) {
	r.Ended = true
	r.Succeeded = v.run.State == state.Succeeded
	r.Problems, r.Notes = v.run.Problems, v.run.Notes
	if v.run.State == state.Underway {
		r.Problems = []string{"the run was cut short; run it again to go on"}
	}
	r.PilotsBusy, r.PilotsIdle, r.PilotsInactive = 0, 0, 0
	r.Summary.WallSeconds = v.run.Seconds
	r.Summary.WaitingSeconds = v.run.Waiting
	r.Summary.Pilots = v.run.Pilots
	r.Summary.Results = v.folders.Results
}

func (v *view) changes() <-chan struct{} { return nil }
