package publish

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/server/convert"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/storage"
	"fairway/internal/store"
	"fairway/sched"
)

const (
	// PublishTries is how often a file is tried to be published before the run
	// gives it up; the next run tries again. What comes right after such a file
	// is tried once, or a full disk would hold the end up for each file.
	PublishTries = 6
	// PublishPause is the time after the first failure. It doubles with each
	// further one.
	PublishPause = 200 * time.Millisecond
	// publishRound bounds the files that are published before the loop is told: one
	// of its transactions takes in so many, and a job may have many thousands.
	publishRound = 512
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

// publishLoop carries out publications until ctx ends. While one fails, those
// behind it wait: publications are in order.
func (f *Files) publishLoop(ctx context.Context) {
	p := newPublisher(f.results, func(lfn string) bool { return f.isOld(ctx, lfn) }, func(lfn, name string) {
		note := fmt.Sprintf("%s/%s was not published by this state, or was changed since: it is now %s/%s", folder.ResultsFolder, lfn, folder.ResultsFolder, name)
		_ = f.inbox.Note(ctx, note)
	})
	for {
		batch, err := f.toPublish.Take(ctx, f.sched)
		if err != nil {
			return
		}
		for tries := 0; len(batch) > 0; {
			done, failure := p.publishAll(batch[:min(len(batch), publishRound)])
			if f.confirm(ctx, batch[:done]) != nil {
				return
			}
			batch = batch[done:]
			if done > 0 {
				tries = 0
			}
			if failure == nil {
				continue
			}
			f.log.Warn("a result could not be published", "error", failure)
			if tries++; tries == PublishTries {
				_ = f.inbox.GiveUp(ctx, batch[0].File, failure)
				batch, tries = batch[1:], PublishTries-1
			} else if f.sched.Sleep(ctx, PublishPause<<(tries-1)) != nil {
				return
			}
		}
	}
}

func (f *Files) confirm(ctx context.Context, batch []dispatch.Publish) error {
	if len(batch) == 0 {
		return nil
	}
	records := make([]dispatch.Record, 0, len(batch))
	for _, b := range batch {
		r, _ := f.results.get(b.File.LFN)
		record, err := r.record()
		if err != nil {
			return err
		}
		records = append(records, record)
	}
	return f.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{Records: records, Dispatch: convert.Each(batch, func(b dispatch.Publish) dispatch.Input {
			return dispatch.Published{File: b.File}
		})}
	})
}
