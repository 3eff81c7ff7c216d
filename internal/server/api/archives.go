package api

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"
)

// Bounds of the archives that stay open between two questions.
const (
	archivesKept = 2
	archiveTime  = time.Minute // after the last question
)

// archives keeps what was read of runs that are retired, for a while: a page asks again and again.
type archives struct {
	mu   sync.Mutex // guards kept
	kept []archivedRun
}

type archivedRun struct {
	number uint32
	run    Archived
	forget *time.Timer
}

// find is Find of runs. A run that is under way is always asked anew.
func (a *archives) find(ctx context.Context, runs Runs, number uint32) (Run, Control, error) {
	if run, ok := a.get(number); ok {
		return run, nil, nil
	}
	run, control, err := runs.Find(ctx, number)
	if archived, ok := run.(Archived); ok && err == nil {
		a.put(number, archived)
	}
	return run, control, err
}

// get is an archive that is kept, if nobody has removed it.
func (a *archives) get(number uint32) (run Archived, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.kept, func(k archivedRun) bool { return k.number == number })
	if at < 0 {
		return run, false
	}
	kept := a.kept[at]
	if _, err := os.Stat(kept.run.Resting.records); err != nil {
		a.kept = slices.Delete(a.kept, at, at+1)
		return run, false
	}
	kept.forget.Reset(archiveTime)
	return kept.run, true
}

func (a *archives) put(number uint32, run Archived) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.kept) >= archivesKept {
		a.kept[0].forget.Stop()
		a.kept = slices.Delete(a.kept, 0, 1)
	}
	a.kept = append(a.kept, archivedRun{number, run, time.AfterFunc(archiveTime, func() { a.drop(number) })})
}

func (a *archives) drop(number uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = slices.DeleteFunc(a.kept, func(k archivedRun) bool { return k.number == number })
}
