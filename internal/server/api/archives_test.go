package api

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"fairway/test/files"
)

// openingRuns are runs that are retired, and how often each was opened.
type openingRuns struct {
	Runs
	folder string
	opened map[uint32]int
}

func (r *openingRuns) Find(_ context.Context, number uint32) (Run, Control, error) {
	if number == 0 {
		return nil, nil, fs.ErrNotExist
	}
	r.opened[number]++
	if number == 100 { // it is under way
		return running{}, nil, nil
	}
	return Archived{Resting: &Resting{records: filepath.Join(r.folder, "store")}}, nil, nil
}

// An archive stays open for a while after the last question, and no longer than it is there; others go for it.
func TestArchivesAreKeptForAWhile(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		runs := &openingRuns{folder: folder, opened: map[uint32]int{}}
		var a archives
		ask := func(number uint32, want int) {
			t.Helper()
			if _, _, err := a.find(t.Context(), runs, number); err != nil {
				t.Fatal(err)
			}
			if got := runs.opened[number]; got != want {
				t.Errorf("run %d was opened %d times; want %d", number, got, want)
			}
		}
		ask(1, 1)
		ask(1, 2) // its records are not there any more
		files.Write(t, filepath.Join(folder, "store"), "records")
		ask(1, 2)
		ask(2, 1)
		ask(1, 2)
		ask(2, 1)
		ask(3, 1) // the oldest goes for it
		ask(2, 1)
		ask(1, 3)
		ask(3, 1)

		<-time.After(archiveTime / 2)
		ask(3, 1)
		<-time.After(archiveTime / 2)
		synctest.Wait()
		ask(3, 1)
		ask(1, 4)
		<-time.After(archiveTime)
		synctest.Wait()
		if len(a.kept) != 0 {
			t.Errorf("%d archives are open", len(a.kept))
		}
		ask(100, 1)
		ask(100, 2)
		if _, _, err := a.find(t.Context(), runs, 0); err == nil || len(a.kept) != 0 {
			t.Errorf("a run that is not there: %v, %d are open", err, len(a.kept))
		}
	})
}
