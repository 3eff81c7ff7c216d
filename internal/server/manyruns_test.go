package server

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// countingRuns counts how many records of runs are read.
type countingRuns struct {
	store.Store
	read atomic.Int64
}

func (s *countingRuns) Load(ctx context.Context, table string) ([]taskqueue.Record, error) {
	records, err := s.Store.Load(ctx, table)
	if table == state.RunTable {
		s.read.Add(int64(len(records)))
	}
	return records, err
}

func (s *countingRuns) LoadPart(
	ctx context.Context, table string, run taskqueue.RunID, from, below string, limit int,
) ([]taskqueue.Record, error) {
	records, err := s.Store.LoadPart(ctx, table, run, from, below, limit)
	if table == state.RunTable {
		s.read.Add(int64(len(records)))
	}
	return records, err
}

// What it takes to list runs and to remove one does not grow with those that are archived.
func TestManyRunsAreListedQuickly(t *testing.T) {
	root := t.TempDir()
	startService(t, root, twoStepsScript).stop()
	const runs = 10_000
	s, err := folder.OpenStore(filepath.Join(root, folder.StateFolder), false)
	if err != nil {
		t.Fatal(err)
	}
	records := make([]taskqueue.Record, runs)
	for i := range records {
		run := &state.Run{
			ID: taskqueue.RunID(i + 1), Workflow: "w", Archived: true, State: state.Succeeded,
			Parameters: map[string]string{"n": "1"},
		}
		if i == 10 {
			run.State = state.Failed
		}
		if records[i], err = run.Record(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Apply(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	counting := new(countingRuns)
	v := startServiceOn(t, root, twoStepsScript, func(s store.Store) store.Store {
		counting.Store = s
		return counting
	})
	defer v.stop()
	list := func(want string, r *wire.ListRunsRequest) {
		t.Helper()
		counting.read.Store(0)
		began := time.Now()
		answer, err := v.client.ListRuns(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d of %d runs in %v", len(answer.GetRuns()), runs, time.Since(began))
		got := fmt.Sprint(len(answer.GetRuns()), answer.GetMore(), answer.GetRuns()[0].GetRun())
		if read := counting.read.Load(); got != want || read > int64(len(answer.GetRuns()))+1 {
			t.Errorf("got %s, and not %s; %d records were read", got, want, read)
		}
	}
	list("100 true 10000", &wire.ListRunsRequest{})
	list("1 false 11", &wire.ListRunsRequest{States: []string{"failed"}})
	list("10000 false 10000", &wire.ListRunsRequest{Limit: math.MaxInt32})
	counting.read.Store(0)
	if _, err := v.client.RemoveRuns(t.Context(), &wire.RemoveRunsRequest{Runs: []uint32{7, 11}}); err != nil {
		t.Fatal(err)
	}
	if read := counting.read.Load(); read > 4 {
		t.Errorf("%d records were read to remove two runs", read)
	}
	list("9998 false 10000", &wire.ListRunsRequest{Limit: math.MaxInt32})
}
