package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/beneath"
	"fairway/internal/fault"
	"fairway/internal/logical"
	"fairway/internal/server/convert"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
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
	// PublishInterval is the least time between two rounds of short jobs: what has come meanwhile
	// is brought to disk together. The first of them, and what comes after a pause, does not wait.
	PublishInterval = 20 * time.Millisecond
)

var (
	beforePublish   = fault.New("publish.before")
	linkedPublish   = fault.New("publish.linked")
	assertedPublish = fault.New("publish.asserted")
	renamedPublish  = fault.New("publish.renamed")
)

// publishLoop carries out publications until ctx ends. While one fails, those
// behind it wait: publications are in order.
func (f *Results) publishLoop(ctx context.Context) {
	first := f.publishHere(ctx)
	if f.elsewhere != nil {
		first = func(batch []taskqueue.StoredFile) (int, error) { return f.elsewhere.publishAll(ctx, batch) }
	}
	publishAll := func(batch []taskqueue.StoredFile) (int, error) {
		done, err := first(batch)
		return f.publishAtSites(ctx, batch[:done], err)
	}
	var full error // is said once for all results that do not fit, until one does
	for {
		batch, err := f.toPublish.Take(ctx, f.sched)
		if err != nil {
			return
		}
		began := time.Now()
		for tries := 0; len(batch) > 0; {
			done, failure := publishAll(batch[:min(len(batch), publishRound)])
			if f.confirm(ctx, batch[:done]) != nil {
				return
			}
			batch = batch[done:]
			if done > 0 {
				tries, full = 0, nil
			}
			if failure == nil {
				continue
			}
			if lost, ok := errors.AsType[*lostError](failure); ok {
				if f.lose(ctx, &batch[0], lost) != nil {
					return
				}
				batch, tries = batch[1:], 0
				continue
			}
			if full == nil || !noRoom(failure) {
				f.log.Warn("a result could not be published", "error", failure)
			}
			if noRoom(failure) {
				if full == nil {
					full = fmt.Errorf("%w; %s has no room for it, nor for others after it", failure, f.Place())
				}
				failure = full
			}
			if tries++; tries == PublishTries {
				_ = f.inbox.GiveUp(ctx, batch[0].File, failure)
				batch, tries = batch[1:], PublishTries-1
			} else if f.sched.Sleep(ctx, PublishPause<<(tries-1)) != nil {
				return
			}
		}
		if pause := time.Until(began.Add(PublishInterval)); pause > 0 && f.sched.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// publishAtSites publishes what is stored at sites there too. It returns how many of a batch are published
// everywhere, and why the next is not: for want of what is given, if these are all.
func (f *Results) publishAtSites(ctx context.Context, batch []taskqueue.StoredFile, why error) (int, error) {
	for i := range batch {
		for _, e := range f.sitesOf(batch[i].PFN) {
			if _, err := e.publishAll(ctx, batch[i:i+1]); err != nil {
				return i, err
			}
		}
	}
	return len(batch), why
}

// noRoom reports whether something failed since a disk or a quota is full.
func noRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// lose says of a result that its stored file is lost. It is published when it has been made
// again.
func (f *Results) lose(ctx context.Context, b *taskqueue.StoredFile, why *lostError) error {
	file := taskqueue.LostFile{File: b.File, PFN: b.PFN, Why: f.folders.Roots().Shown(b.PFN) + " " + why.why}
	return f.inbox.Lose(ctx, file)
}

func (f *Results) publishHere(ctx context.Context) func([]taskqueue.StoredFile) (int, error) {
	p := newPublisher(f.results, func(lfn string) bool { return f.isOld(ctx, lfn) }, func(lfn, name string) {
		note := fmt.Sprintf("%s/%s was not published by this state, or was changed since: it is now %s/%s",
			folder.ResultsFolder, lfn, folder.ResultsFolder, name)
		_ = f.inbox.Note(ctx, note)
	})
	if f.assert != nil {
		p.term, p.assert = f.term, func() error { return f.assert(ctx) }
	}
	return p.publishAll
}

func (f *Results) confirm(ctx context.Context, batch []taskqueue.StoredFile) error {
	if len(batch) == 0 {
		return nil
	}
	records := make([]taskqueue.Record, 0, len(batch))
	for _, b := range batch {
		if f.elsewhere != nil {
			break // it is recorded already
		}
		r, _ := f.results.get(b.File.LFN)
		record, err := r.record(f.owner)
		if err != nil {
			return err
		}
		records = append(records, record)
	}
	return f.inbox.Deliver(ctx, func() *loop.Request {
		return &loop.Request{Records: records, Dispatch: convert.Each(batch, func(b taskqueue.StoredFile) taskqueue.Input {
			return taskqueue.Published{File: b.File}
		})}
	})
}

// publisher makes committed versions appear under their plain names in the
// results folder. A name changes from one version to the next in one rename;
// repeating a publication, after a crash for instance, changes nothing, so a
// watcher sees each version appear once. What stands under a name and is not this
// state's is set aside under another one.
type publisher struct {
	published *published
	old       func(lfn string) bool        // what stands under a name is of an earlier run, and may go
	aside     func(lfn, name string)       // is told what was set aside, and as what
	latest    map[string]taskqueue.Version // published by this process, by LFN

	storage *beneath.Folder // of the state's own files, during a round; nil: there is none

	// Where servers stand by: the term of this one, what returns an error if another one may be active,
	// and that what others had ready is gone.
	term    uint64
	assert  func() error
	cleared bool
}

func newPublisher(s *published, old func(lfn string) bool, aside func(lfn, name string)) *publisher {
	return &publisher{published: s, old: old, aside: aside, latest: map[string]taskqueue.Version{}}
}

// unpublishedName is what a file is called in the results folder for the moment
// between its link and its rename. One is enough: files are published one by
// one, by the process that holds the state's lock.
func (p *publisher) unpublishedName() string {
	name := ".fairway-publishing-" + p.published.folders.ID
	if p.term > 0 {
		name = fmt.Sprintf("%s-%d", name, p.term)
	}
	return name
}

// fence keeps servers of earlier terms from publishing: what they had ready is gone, so they cannot
// rename it, and before they rename what they make ready from now on they learn that their term is over.
func (p *publisher) fence(results *beneath.Folder) error {
	if p.assert == nil || p.cleared {
		return nil
	}
	names, err := results.List(".")
	if err != nil {
		return err
	}
	own := p.unpublishedName()
	for _, name := range names {
		if strings.HasPrefix(name, own[:strings.LastIndexByte(own, '-')]) && name != own {
			if err := results.Clear(name); err != nil {
				return err
			}
		}
	}
	p.cleared = true
	return nil
}

// publishAll publishes in order and makes the names durable. It returns how
// many of the first ones are published, and why the next is not.
func (p *publisher) publishAll(batch []taskqueue.StoredFile) (int, error) {
	if err := os.MkdirAll(p.published.folders.Results, 0o777); err != nil {
		return 0, fmt.Errorf("publishing: %w", err)
	}
	results, err := beneath.Open(p.published.folders.Results)
	if err != nil {
		return 0, fmt.Errorf("publishing: %w", err)
	}
	defer func() { _ = results.Close() }()
	defer results.KeepParent()()
	if err := p.fence(results); err != nil {
		return 0, fmt.Errorf("publishing: %w", err)
	}
	if p.storage, err = beneath.Open(p.published.folders.Storage); err == nil {
		defer func() { _, p.storage = p.storage.Close(), nil }()
		defer p.storage.KeepParent()()
	} else if !errors.Is(err, fs.ErrNotExist) { // what is stored elsewhere needs none
		return 0, fmt.Errorf("publishing: %w", err)
	}
	changed := map[string]bool{}
	done := 0
	var failure error
	for _, b := range batch {
		if failure = p.publish(results, b, changed); failure != nil {
			failure = fmt.Errorf("publishing %s: %w", b.File.LFN, failure)
			break
		}
		done++
	}
	for name := range changed {
		if err := syncFolder(results, name); err != nil {
			return 0, fmt.Errorf("publishing into %s: %w", results.Name(name), err)
		}
	}
	return done, failure
}

func syncFolder(results *beneath.Folder, name string) error {
	folder, err := results.Sub(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// publish makes a stored file the result of its name, unless a later version is that already,
// and notes what stands there. changed collects the folders that are to be brought to disk.
func (p *publisher) publish(results *beneath.Folder, b taskqueue.StoredFile, changed map[string]bool) error {
	lfn := b.File.LFN
	if newest, ok := p.latest[lfn]; ok && newest > b.File.Version {
		return nil // fenced: a later version stands there
	}
	if !filepath.IsLocal(lfn) {
		return errors.New("its name leads out of the results folder")
	}
	if same, err := p.published.holds(results, lfn, b.PFN); err != nil {
		return err
	} else if !same {
		if err := asReported(p.published.folders.Roots(), &b); err != nil {
			return err
		}
		err := p.clearFolders(results, lfn)
		if err == nil {
			err = p.place(results, b, changed)
		}
		if blocked(err) {
			if err = p.makeWay(results, lfn); err == nil {
				err = p.place(results, b, changed)
			}
		}
		if err != nil {
			return err
		}
	}
	now, err := p.published.stampAt(results, lfn)
	if err != nil {
		return err
	}
	p.published.put(publishedRecord{LFN: lfn, PFN: b.PFN, Stamp: now})
	p.latest[lfn] = b.File.Version
	return nil
}

// place puts the file below a name of its own, and renames it to the one that it is to have.
func (p *publisher) place(results *beneath.Folder, b taskqueue.StoredFile, changed map[string]bool) error {
	lfn := path.Clean(b.File.LFN)
	above := path.Dir(lfn)
	folder, element, err := results.Make(lfn, func(f *beneath.Folder) error {
		name, err := filepath.Rel(results.Name("."), f.Name("."))
		changed[name] = true
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	if err := beforePublish.Hit(); err != nil {
		return err
	}
	temporary := p.unpublishedName()
	if logical.IsFolder(b.File.LFN) {
		err = p.unpackResult(results, &b, temporary)
	} else {
		err = p.provide(&b, results.Path(temporary))
	}
	if err == nil {
		err = linkedPublish.Hit()
	}
	if err == nil && p.assert != nil {
		if err = p.assert(); err == nil {
			err = assertedPublish.Hit()
		}
	}
	if err == nil {
		err = p.giveName(results, temporary, folder, element, b.File.LFN)
	}
	if err != nil {
		_ = results.Clear(temporary)
		return err
	}
	changed[above] = true
	return renamedPublish.Hit()
}

// giveName gives what is ready its name in a folder. What a person has put there stays, under another.
func (p *publisher) giveName(results *beneath.Folder, ready string, in *beneath.Folder, element, lfn string) error {
	if !logical.IsFolder(lfn) { // most names are free, and a look costs as much as to try
		if err := results.Move(ready, in, element); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := p.setAside(results, lfn); err != nil {
		return err
	}
	if logical.IsFolder(lfn) {
		return replaceFolder(results, ready, in, element)
	}
	return results.Replace(ready, in, element)
}

// provide makes another name of a stored file, or a copy of it where the results
// are on another file system. Only what is copied is read.
func (p *publisher) provide(b *taskqueue.StoredFile, temporary string) error {
	stored, err := p.stored(b.PFN)
	if err != nil {
		return err
	}
	defer func() { _ = stored.Close() }()
	if linked, err := folder.LinkOrCopy(stored.Path(stored.element), temporary); err != nil || linked && !stored.copied {
		return err
	}
	return pathAsWritten(temporary, b)
}

// stored is that of published, with the folders that are open anyway.
func (p *publisher) stored(pfn string) (*storedFile, error) {
	if name, own := storage.StateName(pfn); own && p.storage != nil {
		return storedBeneath(p.storage, name)
	}
	return p.published.stored(pfn)
}

func pathAsWritten(path string, b *taskqueue.StoredFile) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return asWritten(file, b)
}

// clearFolders removes the results of an earlier run that are folders, and in which
// the name would be.
func (p *publisher) clearFolders(results *beneath.Folder, lfn string) error {
	for at := path.Dir(archive.Clean(lfn)); at != "."; at = path.Dir(at) {
		if p.oldFolder(at) {
			if err := withdraw(results, at+"/"); err != nil {
				return err
			}
		}
	}
	return nil
}

// oldFolder reports whether what stands under a name is a result of an earlier run that
// is a folder, and may go.
func (p *publisher) oldFolder(name string) bool {
	_, ok := p.published.get(name + "/")
	return ok && p.old(name+"/")
}

func (p *publisher) setAside(results *beneath.Folder, lfn string) error {
	name := archive.Clean(lfn)
	there, err := results.Lstat(name)
	if err != nil || there.IsDir() != logical.IsFolder(lfn) {
		return folder.IgnoreMissing(err) // what is of the other kind is in the way of the rename
	}
	if ours, err := p.published.isOurs(results, lfn); ours || err != nil {
		return err
	}
	if there.IsDir() && p.makeWay(results, lfn) == nil {
		return nil
	}
	folder, element, err := results.Parent(name)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	for number := 1; ; number++ {
		free := fmt.Sprintf("%s.~%d~", element, number)
		err := unix.Renameat2(unix.AT_FDCWD, folder.Path(element), unix.AT_FDCWD, folder.Path(free), unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system does not know that
			if _, err = os.Lstat(folder.Path(free)); errors.Is(err, fs.ErrNotExist) {
				err = os.Rename(folder.Path(element), folder.Path(free))
			} else if err == nil {
				err = fs.ErrExist
			}
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err == nil:
			p.aside(name, path.Join(path.Dir(name), free))
		}
		return err
	}
}
