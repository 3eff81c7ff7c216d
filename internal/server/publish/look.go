package publish

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fairway/internal/beneath"
	"fairway/internal/dispatch"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
)

// Look finds out how the files of runs stand before they begin or go on.
type Look struct {
	// Lost are the stored files that are lost.
	Lost []taskqueue.LostFile
	// Unpublished is what is to be published once more: what was published and no longer
	// stands among the results as it was, since somebody has removed or replaced it. A
	// file that another version of its run will replace is left to that, and so is one
	// that is lost.
	Unpublished []taskqueue.StoredFile

	storage   *Storage
	stored    []taskqueue.StoredFile
	published []publishedFile
}

// publishedFile was published among some results.
type publishedFile struct {
	taskqueue.FileView
	results *Results
}

// Look takes from dispatch what is to be looked at. Nothing is looked at before Run.
func (f *Storage) Look(core *dispatch.Core) *Look {
	return &Look{storage: f, stored: slices.Collect(core.Stored)}
}

// Published adds what a run has published to what is to be looked at.
func (l *Look) Published(core *dispatch.Core, run taskqueue.RunID, results *Results) {
	for file := range core.Written(run) {
		if file.Publish && file.Published && file.PFN != "" {
			l.published = append(l.published, publishedFile{file, results})
		}
	}
}

// Run looks, and sets Lost and Unpublished. Where a server does not answer, or ctx ends,
// files count as they should be, which is told.
func (l *Look) Run(ctx context.Context) {
	f := l.storage
	l.Lost = lostFiles(ctx, f.folders.Roots(), func() storage.Element { return f.prompt }, l.stored, f.note)
	gone := make(map[string]bool, len(l.Lost))
	for _, file := range l.Lost {
		gone[file.PFN] = true
	}
	silent := map[*Results]bool{}
	for i := range l.published {
		file := &l.published[i]
		if gone[file.PFN] || silent[file.results] {
			continue
		}
		stands, ok := file.results.stands(ctx, &file.FileView)
		if !ok {
			silent[file.results] = true
			continue
		}
		if !stands {
			l.Unpublished = append(l.Unpublished, taskqueue.StoredFile{
				File: file.File, PFN: file.PFN, Size: file.Size, Adler32: file.Adler32, Written: file.Written,
			})
		}
	}
}

// stands reports whether a file is among the results as it was published. One that
// cannot be looked at is tried to be published, which tells why. ok is false if there was
// no answer at all.
func (f *Results) stands(ctx context.Context, file *taskqueue.FileView) (stands, ok bool) {
	stands, ok = true, true
	if f.elsewhere != nil {
		stands, ok = f.standsAt(ctx, f.elsewhere, file)
	} else if results, err := beneath.Open(f.folders.Results); err != nil {
		return false, true
	} else {
		defer func() { _ = results.Close() }()
		same, err := f.results.holds(results, file.File.LFN, file.PFN)
		stands = err == nil && same
	}
	for _, e := range f.sitesOf(file.PFN) {
		if stands && ok {
			stands, ok = f.standsAt(ctx, e, file)
		}
	}
	return stands, ok
}

func (f *Results) standsAt(ctx context.Context, e *destination, file *taskqueue.FileView) (stands, ok bool) {
	at := shownPlace(e.place)
	defer time.AfterFunc(storage.SlowTime, func() {
		f.note(fmt.Sprintf("%s is slow to answer which results it has: it is waited for, up to %s", at, LookTime))
	}).Stop()
	limited, cancel := context.WithTimeout(ctx, LookTime)
	defer cancel()
	stands = e.stands(limited, file)
	if limited.Err() != nil && ctx.Err() == nil {
		f.note(fmt.Sprintf("%s did not answer within %s: what is published there counts as there", at, LookTime))
	}
	return stands, limited.Err() == nil
}
