package publish

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"fairway/internal/dispatch"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/storage"
	"fairway/internal/store"
	"fairway/lib/sched"
)

// Files are the results of a run and its stored files. They are what the loop asks for
// files (loop.Files); Run does it.
type Files struct {
	folders folder.Layout
	results *published
	element storage.Element
	prompt  storage.Element // the same, for questions and removals
	store   store.Store
	inbox   *loop.Inbox
	sched   *sched.Scheduler
	log     *slog.Logger
	note    func(string) // tells a person

	stores    []string     // how the PFNs of outputs begin
	elsewhere *destination // where results are published; nil: in the results folder

	// OtherPlace says, after StoreAt, that outputs were never stored there before.
	OtherPlace bool

	toPublish *loop.Mailbox[dispatch.StoredFile]
	toRemove  *loop.Mailbox[string]

	// InputsGone says that files of open inputs have gone. Results of earlier runs stay
	// then, since they could not be made again. It is set before Run.
	InputsGone bool
}

// New makes the files of a run. They are not usable before Load.
func New(
	records store.Store, folders folder.Layout, element storage.Element, inbox *loop.Inbox, note func(string),
	s *sched.Scheduler, log *slog.Logger,
) *Files {
	return &Files{
		folders: folders, element: element, prompt: promptly(element, note), store: records, inbox: inbox, sched: s,
		log: log, note: note,
		toPublish: loop.NewMailbox[dispatch.StoredFile](), toRemove: loop.NewMailbox[string](),
	}
}

// PublishAt has results published beneath a PFN, as ParsePlace gives it, and not in
// the results folder. A server is asked to store something if nothing was published there
// before. It is called before Run.
func (f *Files) PublishAt(ctx context.Context, place string) (err error) {
	e := &destination{place: place, state: f.folders.ID, files: f.element, at: f.folders,
		persist: func(ctx context.Context, records ...dispatch.Record) error {
			return f.store.Apply(context.WithoutCancel(ctx), records)
		}}
	if err = outsideState(&f.folders, place); err == nil {
		e.shelf, err = shelfOf(place)
	}
	if err == nil {
		err = e.load(ctx, f.store)
	}
	if err == nil && e.turns.Last == 0 && !storage.IsLocal(place) {
		if err = f.tryStore(ctx, e.checkName()); err != nil {
			err = fmt.Errorf("nothing can be published at %s: %w", shownPlace(place), err)
		}
	}
	f.elsewhere = e
	return err
}

// Place is where results are published, for a person.
func (f *Files) Place() string {
	if f.elsewhere == nil {
		return f.folders.Results
	}
	return shownPlace(f.elsewhere.place)
}

// EndTurn says that this server publishes no more.
func (f *Files) EndTurn(ctx context.Context) error {
	if f.elsewhere == nil {
		return nil
	}
	return f.elsewhere.endTurn(ctx)
}

// Load reads what is recorded of the results. It is called once, before Run and after the
// beginning of the run, which adds what an earlier one may have left unrecorded.
func (f *Files) Load(ctx context.Context) (err error) {
	f.results, err = loadPublished(ctx, f.store, f.folders)
	return err
}

// Publish is part of loop.Files.
func (f *Files) Publish(files []dispatch.StoredFile) { f.toPublish.Put(files...) }

// Remove is part of loop.Files.
func (f *Files) Remove(pfns []string) { f.toRemove.Put(pfns...) }

// Run publishes and removes what it is asked for until ctx ends.
func (f *Files) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { f.publishLoop(ctx) })
	group.Go(func() { f.removeLoop(ctx) })
	group.Wait()
}
