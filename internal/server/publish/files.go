package publish

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/storage"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// catalogued is a place of outputs whose results get the PFNs that a catalogue gives them.
type catalogued struct {
	prefix, place string
	catalog       func(name string) (pfn string, err error)
}

// Storage is where the runs of a state store their outputs. It is what the loop asks to
// remove files (loop.Stores); Run does it.
type Storage struct {
	folders folder.Layout
	element storage.Element
	prompt  storage.Element // the same, for questions and removals
	store   store.Store
	inbox   *loop.Inbox
	sched   *sched.Scheduler
	log     *slog.Logger
	note    func(string) // tells a person

	stores     []string            // how the PFNs of outputs begin
	siteStores map[string][]string // the same, of sites whose pilots store elsewhere: that place first
	catalogues []catalogued        // of these sites
	// OtherPlace says, after StoreAt, that outputs were never stored there before.
	OtherPlace bool

	toRemove *loop.Mailbox[string]

	// Where servers of the state stand by: the term of this one, what returns an error if another one may
	// be active, and when files may be removed.
	term      uint64
	assert    func(context.Context) error
	removesAt time.Time
}

// FenceBy is for a server that others may replace while it is frozen: what it publishes bears its term, and
// assert returns an error when another one may be active. Nothing is removed before removesAt. It comes
// before Run.
func (f *Storage) FenceBy(term uint64, assert func(context.Context) error, removesAt time.Time) {
	f.term, f.assert, f.removesAt = term, assert, removesAt
}

// NewStorage makes the storage of a state.
func NewStorage(
	records store.Store, folders folder.Layout, element storage.Element, inbox *loop.Inbox, note func(string),
	s *sched.Scheduler, log *slog.Logger,
) *Storage {
	return &Storage{
		folders: folders, element: element, prompt: promptly(element, note), store: records, inbox: inbox, sched: s,
		log: log, note: note, toRemove: loop.NewMailbox[string](),
	}
}

// Remove is part of loop.Stores.
func (f *Storage) Remove(pfns []string) { f.toRemove.Put(pfns...) }

// Run removes what it is asked for until ctx ends.
func (f *Storage) Run(ctx context.Context) { f.removeLoop(ctx) }

// Results are what a run publishes. They are what the loop asks to publish
// (loop.Run.Results); Run does it.
type Results struct {
	*Storage
	folders folder.Layout   // with the results folder of the run
	owner   taskqueue.RunID // whose the published names are; 0: those of all runs of the folder
	inbox   *loop.Inbox     // of the run
	note    func(string)    // tells a person of the run

	results   *published
	elsewhere *destination   // where results are published; nil: in the results folder
	sites     []*destination // and where those are that are stored at a site, by its catalogue

	toPublish *loop.Mailbox[taskqueue.StoredFile]

	// Tried says that TryPlace has asked the server of the place. It is set before PublishAt.
	Tried bool

	// InputsGone says that files of open inputs have gone. Results of earlier runs stay
	// then, since they could not be made again. It is set before Run.
	InputsGone bool
}

// NewResults makes the results of a run, in the results folder of a layout. owner is 0 where all
// runs of a folder share it. They are not usable before Load.
func (f *Storage) NewResults(
	folders folder.Layout, owner taskqueue.RunID, inbox *loop.Inbox, note func(string),
) *Results {
	return &Results{
		Storage: f, folders: folders, owner: owner, inbox: inbox, note: note,
		toPublish: loop.NewMailbox[taskqueue.StoredFile](),
	}
}

// PublishAt has results published beneath a PFN, as ParsePlace gives it, and not in
// the results folder. A server is asked to store something if nothing was published there
// before. It is called before Run.
func (f *Results) PublishAt(ctx context.Context, place string) (err error) {
	if err = outsideState(&f.folders, place); err == nil {
		f.elsewhere, err = f.destination(ctx, place)
	}
	if err == nil && f.elsewhere.turns.Last == 0 && !f.Tried {
		err = f.try(ctx, f.elsewhere)
	}
	return err
}

// destination opens a place for what is published.
func (f *Results) destination(ctx context.Context, place string) (e *destination, err error) {
	e = &destination{
		place: place, state: f.publisherID(), files: f.element, at: f.folders,
		persist: func(ctx context.Context, records ...taskqueue.Record) error {
			return f.store.Apply(context.WithoutCancel(ctx), records)
		},
	}
	if e.shelf, err = shelfOf(place); err == nil {
		err = e.load(ctx, f.store)
	}
	return e, err
}

// PublishAtSites has results that are stored at a place of a site (StoreOf) appear there too, each under the
// PFN that the catalogue of the site gives its name, so that other programs find it. It is called before Run,
// after PublishAt.
func (f *Results) PublishAtSites(ctx context.Context) error {
	for _, c := range f.catalogues {
		within := ""
		if f.owner != 0 { // runs of a folder of their own each may have results of the same names
			within = "/" + f.publisherID()
		}
		if f.elsewhere != nil && f.elsewhere.place == c.place+within {
			continue
		}
		e, err := f.destination(ctx, c.place+within)
		if err != nil {
			return err
		}
		e.of, e.catalog = c.prefix, func(name string) (string, error) { return c.catalog(within + name) }
		f.sites = append(f.sites, e)
	}
	return nil
}

// sitesOf are where a result that is stored under a PFN appears by a catalogue.
func (f *Results) sitesOf(pfn string) (of []*destination) {
	for _, e := range f.sites {
		if strings.HasPrefix(pfn, e.of) {
			of = append(of, e)
		}
	}
	return of
}

// TryPlace refuses a place at which nothing could be published. A server is asked to store something.
func (f *Storage) TryPlace(ctx context.Context, place string) (err error) {
	e := &destination{place: place, state: f.folders.ID + "-" + rand.Text(), at: f.folders}
	if err = outsideState(&f.folders, place); err == nil {
		e.shelf, err = shelfOf(place)
	}
	if err == nil {
		err = f.try(ctx, e)
	}
	return err
}

func (f *Storage) try(ctx context.Context, e *destination) error {
	if storage.IsLocal(e.place) {
		return nil
	}
	if err := f.tryStore(ctx, e.checkName()); err != nil {
		return fmt.Errorf("nothing can be published at %s: %w", shownPlace(e.place), err)
	}
	return nil
}

// publisherID tells who publishes at a place from all others. Runs that share no results folder
// publish as different states would: none replaces what another has published.
func (f *Results) publisherID() string {
	if f.owner == 0 {
		return f.folders.ID
	}
	return fmt.Sprintf("%s-%d", f.folders.ID, f.owner)
}

// Place is where results are published, for a person.
func (f *Results) Place() string {
	if f.elsewhere == nil {
		return f.folders.Results
	}
	return shownPlace(f.elsewhere.place)
}

// EndTurn says that this server publishes no more.
func (f *Results) EndTurn(ctx context.Context) error {
	var failures []error
	for _, e := range f.destinations() {
		failures = append(failures, e.endTurn(ctx))
	}
	return errors.Join(failures...)
}

// destinations are all places but the results folder.
func (f *Results) destinations() []*destination {
	if f.elsewhere == nil {
		return f.sites
	}
	return append([]*destination{f.elsewhere}, f.sites...)
}

// Load reads what is recorded of the results. It is called once, before Run and after the
// beginning of the run, which adds what an earlier one may have left unrecorded.
func (f *Results) Load(ctx context.Context) (err error) {
	f.results, err = loadPublished(ctx, f.store, f.folders, f.owner)
	return err
}

// Publish does not block.
func (f *Results) Publish(files []taskqueue.StoredFile) { f.toPublish.Put(files...) }

// Run publishes what it is asked for until ctx ends.
func (f *Results) Run(ctx context.Context) { f.publishLoop(ctx) }
