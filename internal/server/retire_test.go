package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/server/state"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/sched"
	"fairway/test/files"
)

// unswept is a store that takes note of transactions, and does not delete what a run leaves that is retired.
type unswept struct {
	store.Store
	retired bool
	most    int // records of a transaction that keeps results, retires a run or deletes its records
	deleted int
}

func (s *unswept) Apply(ctx context.Context, all []taskqueue.Record) error {
	if slices.ContainsFunc(all, func(r taskqueue.Record) bool {
		return r.Table == state.SweptTable || r.Table == records.TableResult || r.Table == state.ProvenanceTable
	}) || s.retired {
		s.most = max(s.most, len(all))
	}
	s.retired = s.retired || slices.ContainsFunc(all, func(r taskqueue.Record) bool {
		return r.Table == state.SweptTable
	})
	left := slices.DeleteFunc(slices.Clone(all), func(r taskqueue.Record) bool {
		return s.retired && r.Run != 0 && r.Body == nil
	})
	s.deleted += len(all) - len(left)
	return s.Store.Apply(ctx, left)
}

const twelve = `
workflow: twelve
inputs: {in: {files: "{n}.txt", as: "in/{n}"}}
steps:
  one: {each: "in/{n}", writes: "out/{n}", command: none}
`

// A run is retired in small transactions. A server that ends before all its records are deleted leaves a state
// that the next one loads, and cleans; the results are there for other runs.
func TestARunIsRetiredInPieces(t *testing.T) {
	inputs := map[string]string{}
	for _, n := range strings.Split("abcdefghijkl", "") {
		inputs[n+".txt"] = n
	}
	in, root := files.Folder(t, inputs), t.TempDir()
	executed := 0
	work := func(a *wire.Assignment, _ func(string) string) (map[string]string, int) {
		executed++
		return map[string]string{a.GetOutputs()[0].GetLfn(): "made"}, 0
	}
	left := &unswept{}
	v := startServiceOn(t, root, work, func(s store.Store) store.Store {
		left.Store = s
		return left
	})
	v.server.retiring = retiring{jobs: 2, records: 3}
	v.submit(twelve, in, nil)
	v.await(1)
	for len(v.server.runs.all()) > 0 {
		_ = sched.Default().Sleep(t.Context(), time.Millisecond)
	}
	v.stop()
	if executed != len(inputs) || left.deleted < 2*len(inputs) {
		t.Fatalf("%d jobs were executed, %d records would have been deleted", executed, left.deleted)
	}
	if left.most > 8 {
		t.Errorf("%d records were one transaction", left.most)
	}
	v = startService(t, root, work)
	defer v.stop()
	v.swept()
	for _, table := range slices.Concat(records.Tables(), archivedTables) {
		records, err := v.server.records.LoadPart(t.Context(), table, 1, "", state.LastKey, 1)
		if err != nil || len(records) > 0 {
			t.Errorf("table %s: %v, %v", table, records, err)
		}
	}
	if run := v.submit(twelve, in, nil); !v.await(run).GetSucceeded() || executed != len(inputs) {
		t.Errorf("run %d executed %d jobs again", run, executed-len(inputs))
	}
}
