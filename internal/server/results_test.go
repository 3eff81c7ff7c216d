package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/test/files"
)

// Results that no run names are cut to a number, the oldest first, with their stored files, logs
// and what is known of how they were made; a later run takes one that has stayed.
func TestUnusedResultsAreCutWhenARunEnds(t *testing.T) {
	const keep = 6
	v := startServiceAs(t, t.TempDir(), twoStepsScript, func(c *Config) {
		c.UnusedResults, c.Dispatch.Retention = keep, time.Hour
	})
	defer v.stop()
	submit := func(i int) uint32 {
		texts := files.Folder(t, map[string]string{"in/a.txt": fmt.Sprint(i), "in/b.txt": fmt.Sprint("b", i)})
		return v.submit(strings.Replace(twoSteps, "demo", fmt.Sprint("demo", i), 1), texts, nil) // three jobs
	}
	for i := range 6 {
		if end := v.await(submit(i)); !end.GetSucceeded() {
			t.Fatal(end)
		}
		v.retired(taskqueue.RunID(i + 1))
	}
	settled(t, v, 18) // of runs that are kept
	for i := range 6 {
		if _, err := v.server.RemoveRun(t.Context(), taskqueue.RunID(i+1), false); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, v, keep)
	end := v.await(submit(5))
	if end.GetSteps()[0].GetReused() != 2 || end.GetSummary().GetAttempts() != 0 {
		t.Errorf("the last results are not there any more: %v", end)
	}
	if end := v.await(submit(0)); end.GetSummary().GetAttempts() != 3 {
		t.Errorf("the oldest results are there still: %v", end)
	}
	v.retired(8)
	settled(t, v, 9) // six of two runs, and three of none
}

// settled waits until a server has so many results, and no more than belongs to them.
func settled(t *testing.T, v *service, want int) {
	t.Helper()
	stored := func() (names []string) {
		for _, place := range []string{v.server.folders.Storage, v.server.folders.Logs} {
			err := filepath.WalkDir(place, func(path string, entry os.DirEntry, err error) error {
				if err == nil && entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), ".") {
					names = append(names, path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, folder.StoreFile) })
	}
	changed := v.server.loop.Changes()
	for {
		var results int
		if err := v.server.inbox.Query(t.Context(), func(c *state.Cores) {
			results = c.Dispatch.Results()
		}); err != nil {
			t.Fatal(err)
		}
		known, err := v.server.records.Load(t.Context(), state.ProvenanceTable)
		if err != nil {
			t.Fatal(err)
		}
		if results == want && len(known) == want && len(stored()) == want {
			return
		}
		t.Logf("%d results, %d known, stored %v", results, len(known), stored())
		<-changed
		changed = v.server.loop.Changes()
	}
}
