package publish

import (
	"context"
	"log/slog"
	"sync"

	"fairway/internal/dispatch"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/storage"
	"fairway/internal/store"
	"fairway/sched"
)

// Files are the results of a run and its stored files. They are what the loop asks for
// files (loop.Files); Run does it.
type Files struct {
	folders folder.Layout
	results *published
	element storage.Element
	store   store.Store
	inbox   *loop.Inbox
	sched   *sched.Scheduler
	log     *slog.Logger
	note    func(string) // tells a person

	toPublish *loop.Mailbox[dispatch.Publish]
	toRemove  *loop.Mailbox[string]

	// InputsGone says that files of open inputs have gone. Results of earlier runs stay
	// then, since they could not be made again. It is set before Run.
	InputsGone bool
}

// New makes the files of a run from what is recorded of its results.
func New(ctx context.Context, records store.Store, folders folder.Layout, element storage.Element, inbox *loop.Inbox, note func(string), s *sched.Scheduler, log *slog.Logger) (*Files, error) {
	results, err := loadPublished(ctx, records, folders)
	return &Files{
		folders: folders, results: results, element: element, store: records, inbox: inbox, sched: s, log: log, note: note,
		toPublish: loop.NewMailbox[dispatch.Publish](), toRemove: loop.NewMailbox[string](),
	}, err
}

// Reload reads once more what is recorded of the results: the beginning of a run adds
// what an earlier one may have left unrecorded. It is called before Run.
func (f *Files) Reload(ctx context.Context) (err error) {
	f.results, err = loadPublished(ctx, f.store, f.folders)
	return err
}

// Publish is part of loop.Files.
func (f *Files) Publish(files []dispatch.Publish) { f.toPublish.Put(files...) }

// Remove is part of loop.Files.
func (f *Files) Remove(pfns []string) { f.toRemove.Put(pfns...) }

// Run publishes and removes what it is asked for until ctx ends.
func (f *Files) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { f.publishLoop(ctx) })
	group.Go(func() { f.removeLoop(ctx) })
	group.Wait()
}
