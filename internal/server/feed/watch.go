package feed

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/storage"
	"fairway/lib/sched"
)

// StableTime is how long a file in a watched folder must have been left alone
// before it is taken to be complete. Files that are renamed into the folder
// after they were written are taken at once if they are older.
const StableTime = time.Second

const (
	// WatchInterval is how often a watched folder is looked at where the system
	// does not tell of every change: on network file systems, through links, and
	// where a pattern leaves the folder open.
	WatchInterval = time.Second
	// RelookInterval is how often it is looked at where the system does.
	RelookInterval = 30 * time.Second
)

// watch feeds an open input until its rule, a person or ctx closes it.
func (f *Feeder) watch(ctx context.Context, in *workflow.DeclaredInput) error {
	last, alone := time.Now(), make(stability)
	for {
		before, limit := f.watched(in)
		ended := f.ended(in)
		files, unstable, err := f.complete(ctx, in, alone)
		if err != nil || ctx.Err() != nil {
			return ignoreEnd(ctx, err)
		}
		news := unstable || len(f.unknown(in.Name, files)) > 0
		if news {
			last = time.Now()
		}
		idle := in.Close.Idle > 0 && time.Since(last) >= in.Close.Idle
		closing := ended && !unstable || idle && !news
		if err := f.feed(ctx, in.Name, files, closing); err != nil || closing {
			return ignoreEnd(ctx, err)
		}
		f.await(ctx, in, before, min(limit, f.pause(in, last, unstable)))
	}
}

// ignoreEnd drops the error of a wait that was ended on purpose.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// complete enumerates the files that are complete.
func (f *Feeder) complete(
	ctx context.Context, in *workflow.DeclaredInput, alone stability,
) (files []flow.InputFile, unstable bool, err error) {
	if in.URLList != "" {
		return f.completeLines(ctx, in, alone)
	}
	all, err := f.found(ctx, in)
	if err != nil {
		return nil, false, err
	}
	for _, file := range all {
		path := f.find.roots.Shown(file.PFN)
		info, err := os.Stat(path)
		if err != nil || !alone.stable(path, info, time.Now()) || tagOf(file.PFN, storage.InfoOf(info)) != file.Tag {
			unstable = true
			continue
		}
		files = append(files, file)
	}
	return files, unstable, nil
}

// completeLines gives the files of a URL list that were not fed before. A last
// line without an end counts when the list was left alone, as a file does. A
// list that is not there yet has none.
func (f *Feeder) completeLines(
	ctx context.Context, in *workflow.DeclaredInput, alone stability,
) (files []flow.InputFile, unstable bool, err error) {
	path := f.find.absolute(in.URLList)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, inInput(in, err)
	}
	found, err := f.find.List(ctx, in, alone.stable(path, info, time.Now()), f.fedTo(in.Name))
	if err == nil {
		err = found.Err()
	}
	if err == nil {
		err = f.find.recordable(found.Files)
	}
	if err != nil {
		return nil, false, inInput(in, err)
	}
	return found.Files, found.begun, nil
}

// ended reports whether the file is there that says that no more files will come.
// It is looked for before the files, so that none is missed that came first.
func (f *Feeder) ended(in *workflow.DeclaredInput) bool {
	if in.Close.File == "" {
		return false
	}
	_, err := os.Stat(f.find.absolute(in.Close.File))
	return err == nil
}

// pause is how long to wait at most before looking again, whatever the system
// tells.
func (f *Feeder) pause(in *workflow.DeclaredInput, last time.Time, unstable bool) time.Duration {
	pause := RelookInterval
	if unstable {
		pause = min(pause, StableTime)
	}
	if in.Close.Idle > 0 {
		pause = min(pause, max(time.Until(last.Add(in.Close.Idle)), time.Millisecond))
	}
	return pause
}

// watched gives the state of the paths whose change is noticed: the list, the
// file that closes, the folders. After limit a change may have gone unnoticed.
func (f *Feeder) watched(in *workflow.DeclaredInput) (states watchedStates, limit time.Duration) {
	states, limit = watchedStates{}, RelookInterval
	if in.URLList != "" {
		states.of(f.find.absolute(in.URLList))
	}
	if in.Close.File != "" {
		states.of(f.find.absolute(in.Close.File))
	}
	if in.Watch {
		for _, glob := range in.Globs {
			limit = min(limit, states.noteFolder(filepath.Dir(f.find.absolute(glob))))
		}
	}
	return states, limit
}

// watchedStates are by path.
type watchedStates map[string]sched.FileState

func (w watchedStates) of(path string) sched.FileState {
	state, err := sched.StatFile(path)
	if err == nil {
		w[path] = state
	}
	return state
}

// noteFolder returns after which time the folders of a pattern have to be looked at anew
// although nothing was noticed.
func (w watchedStates) noteFolder(glob string) time.Duration {
	folder, plain := literal(glob)
	if !plain || !sched.TellsOfChanges(folder) {
		return WatchInterval
	}
	if state := w.of(folder); state.Info != nil && time.Since(state.Info.ModTime()) < sched.FileClockStep {
		return sched.FileClockStep
	}
	return RelookInterval
}

// await waits until one of the states has changed, limit has passed, or ctx has
// ended.
func (f *Feeder) await(ctx context.Context, in *workflow.DeclaredInput, before watchedStates, limit time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	changed := make(chan struct{}, len(before)+1)
	wait := func(until func(context.Context) error) {
		group.Go(func() {
			if err := until(ctx); err == nil {
				changed <- struct{}{}
			} else if ctx.Err() == nil {
				f.log.Warn("an input cannot be watched; looking again after a pause", "input", in.Name, "error", err)
				_ = f.sched.Sleep(ctx, StableTime)
				changed <- struct{}{}
			}
		})
	}
	for path, state := range before {
		wait(func(ctx context.Context) error {
			_, err := f.sched.WaitFile(ctx, sched.Changes(path, state))
			return err
		})
	}
	wait(func(ctx context.Context) error { return f.sched.Sleep(ctx, limit) })
	_, _ = sched.Receive(ctx, f.sched, changed)
}

// stability tells which files of a watched input have been left alone for StableTime.
// It remembers, by path, those with a time of modification that is still to
// come: of another host's clock, or kept by who copied them.
type stability map[string]sighting

type sighting struct {
	identity string
	since    time.Time
}

// stable reports whether the file at path is taken to be complete at a time.
func (st stability) stable(path string, info fs.FileInfo, now time.Time) bool {
	age := now.Sub(info.ModTime())
	if age >= 0 {
		delete(st, path)
		return age >= StableTime
	}
	identity := fileIdentity(info)
	if st[path].identity != identity {
		st[path] = sighting{identity, now}
	}
	return now.Sub(st[path].since) >= StableTime
}
