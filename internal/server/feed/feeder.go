package feed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"

	"connectrpc.com/connect"

	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// Feeder are the declared inputs of the workflow, and what came of them. One goroutine
// feeds them first, in their order; then one for each open input watches it.
type Feeder struct {
	inputs []*workflow.DeclaredInput
	first  map[string][]flow.InputFile // what closed inputs have when the run begins, by name
	find   *Finder
	inbox  *loop.Inbox
	sched  *sched.Scheduler
	log    *slog.Logger

	// Piece is how many files are fed together at the most, so that others are served between; 0: all. It is
	// set before Run.
	Piece int
	// Unfound says why files cannot be found that are still to be fed: the run fails then. It is set before Run.
	Unfound error

	mu     sync.Mutex                    // guards what follows
	known  map[string]map[string]string  // PFNs of what has a durable record, by input and LFN
	left   map[string][]string           // what was told to be left alone, by input
	closed map[string]bool               // durably
	cancel map[string]context.CancelFunc // end the watching of an input
}

// New makes the feeds of a run. Nothing is fed before Run.
func New(inputs []*workflow.DeclaredInput, find *Finder, inbox *loop.Inbox, s *sched.Scheduler,
	log *slog.Logger) *Feeder {
	f := &Feeder{
		inputs: inputs, find: find, inbox: inbox, sched: s, log: log, known: map[string]map[string]string{},
		left:   map[string][]string{},
		closed: map[string]bool{}, cancel: map[string]context.CancelFunc{},
	}
	for _, in := range inputs {
		f.known[in.Name] = map[string]string{}
	}
	return f
}

func (f *Feeder) recorded(records []state.Input) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		if f.known[r.Input] != nil {
			f.known[r.Input][r.LFN] = r.PFN
		}
	}
}

// fedTo says which files of an input were fed before.
func (f *Feeder) fedTo(input string) Known {
	return func(lfn string) (pfn string, fed bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		pfn, fed = f.known[input][lfn]
		return pfn, fed
	}
}

// unknown leaves out files that were fed before.
func (f *Feeder) unknown(input string, files []flow.InputFile) []flow.InputFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	var fresh []flow.InputFile
	for _, file := range files {
		if _, ok := f.known[input][file.LFN]; !ok {
			fresh = append(fresh, file)
		}
	}
	return fresh
}

func (f *Feeder) fed(input string, files []flow.InputFile, closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range files {
		f.known[input][file.LFN] = file.PFN
	}
	if closed {
		f.closed[input] = true
		if cancel := f.cancel[input]; cancel != nil {
			cancel()
		}
	}
}

func (f *Feeder) isClosed(input string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed[input]
}

// AllClosed reports whether no more files will come.
func (f *Feeder) AllClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.closed) == len(f.inputs)
}

// watching gives the context of the goroutine that watches an input; it ends
// when the input is closed.
func (f *Feeder) watching(ctx context.Context, input string) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, f.cancel[input] = context.WithCancel(ctx)
	if f.closed[input] {
		f.cancel[input]()
	}
	return ctx
}

// Run feeds the declared inputs, in their order, so that the same files
// give the same run; and then watches those that stay open until they are
// closed or ctx ends. first is what closed inputs have, and earlier what was fed
// before the run was gone on with.
func (f *Feeder) Run(ctx context.Context, first map[string][]flow.InputFile, earlier []state.Input) {
	f.first = first
	var group sync.WaitGroup
	defer group.Wait()
	f.recorded(earlier)
	if f.recallClosed(ctx) != nil {
		return
	}
	if f.Unfound != nil {
		f.feedFailed(ctx, f.Unfound)
		return
	}
	for _, in := range f.inputs {
		if err := f.feedFirst(ctx, in); err != nil {
			f.feedFailed(ctx, err)
			return
		}
	}
	f.find.lists.forget()
	for _, in := range f.inputs {
		if in.IsOpen() && !in.Submitted && !f.isClosed(in.Name) {
			group.Go(func() {
				if err := f.watch(f.watching(ctx, in.Name), in); err != nil {
					f.feedFailed(ctx, err)
				}
			})
		}
	}
}

// recallClosed takes note of the inputs that an earlier server closed: what came
// to them since is for the next run.
func (f *Feeder) recallClosed(ctx context.Context) error {
	return f.inbox.Query(ctx, func(c *state.Cores) {
		for _, in := range f.inputs {
			if c.Flow.Closed(in.Name) {
				f.fed(in.Name, nil, true)
			}
		}
	})
}

// feedFailed ends the run: it cannot be told what comes without its input.
func (f *Feeder) feedFailed(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, loop.ErrEnded) {
		if err := f.inbox.Fail(ctx, err); err != nil {
			f.log.Error("the run cannot go on", "error", err)
		}
	}
}

// feedFirst feeds what an input has when the run begins. What is complete in an
// open input then comes in its place too, not when its watching happens to begin.
func (f *Feeder) feedFirst(ctx context.Context, in *workflow.DeclaredInput) error {
	switch {
	case f.isClosed(in.Name), in.Submitted:
		return nil
	case !in.IsOpen():
		return f.feed(ctx, in.Name, f.first[in.Name], true)
	case in.Close.File == "" && in.Close.Idle == 0 && !in.Close.Manual:
		return f.feedAll(ctx, in)
	}
	ended := f.ended(in)
	files, unstable, err := f.complete(ctx, in, make(stability))
	if err != nil {
		return err
	}
	return f.feed(ctx, in.Name, files, ended && !unstable)
}

// feedAll is for an open input without a rule: it is closed once its files
// were enumerated.
func (f *Feeder) feedAll(ctx context.Context, in *workflow.DeclaredInput) error {
	files, err := f.found(ctx, in)
	if err != nil {
		return err
	}
	return f.feed(ctx, in.Name, files, true)
}

// found are the files that an input has now. What is left alone is told.
func (f *Feeder) found(ctx context.Context, in *workflow.DeclaredInput) ([]flow.InputFile, error) {
	files, left, err := f.find.Find(ctx, in, f.fedTo(in.Name))
	for _, why := range left {
		if text := f.describeLeft(in, why); text != "" {
			if err := f.inbox.Note(ctx, text); err != nil {
				return nil, err
			}
		}
	}
	return files, err
}

// LeftTold bounds, for each input, how much of what is left alone a run tells.
const LeftTold = 5

// describeLeft is what a person is told, once, of something that is left alone.
func (f *Feeder) describeLeft(in *workflow.DeclaredInput, why error) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	told := f.left[in.Name]
	if len(told) > LeftTold || slices.Contains(told, why.Error()) {
		return ""
	}
	f.left[in.Name] = append(told, why.Error())
	if len(told) == LeftTold {
		return fmt.Sprintf("the input %s leaves more alone; `fairway check` names all of it", in.Name)
	}
	return fmt.Sprintf("the input %s leaves this alone: %v", in.Name, why)
}

// feed hands files to flow, together with the record of them, and perhaps
// closes the input.
func (f *Feeder) feed(ctx context.Context, input string, files []flow.InputFile, last bool) error {
	files = f.unknown(input, files)
	if len(files) == 0 && !last {
		return nil
	}
	for f.Piece > 0 && len(files) > f.Piece {
		if err := f.feedPiece(ctx, input, files[:f.Piece], true, false); err != nil {
			return err
		}
		files = files[f.Piece:]
	}
	return f.feedPiece(ctx, input, files, false, last)
}

// feedPiece is feed for some of the files, of which more are to come or not.
func (f *Feeder) feedPiece(ctx context.Context, input string, files []flow.InputFile, part, last bool) error {
	records, err := f.find.Records(input, files, part)
	if err != nil {
		return err
	}
	steps := []flow.Input{flow.Arrived{Input: input, Files: files}}
	if last {
		steps = append(steps, flow.Closed{Input: input})
	}
	err = f.inbox.Deliver(ctx, func() *loop.Request { return &loop.Request{Flow: steps, Records: records} })
	if err != nil {
		return err
	}
	f.fed(input, files, last)
	return f.inbox.Wake(ctx) // the loop may have waited for the end of the inputs only
}

// Named describes a file that a submitted job reads: at a path, relative to the folder of the
// run, or at a URL.
func (f *Finder) Named(ctx context.Context, lfn, file string) (flow.InputFile, error) {
	if !hasScheme(file) {
		file = f.pfn(file)
	}
	found, err := f.stated(ctx, lfn, file)
	if err == nil {
		err = f.recordable([]flow.InputFile{found})
	}
	return found, err
}

// Records are those of files that are fed to an input. part says that more are to come.
func (f *Finder) Records(input string, files []flow.InputFile, part bool) ([]taskqueue.Record, error) {
	records := make([]taskqueue.Record, len(files))
	for i, file := range files {
		var err error
		records[i], err = state.NewRecord(state.InputTable, f.Run, input+"/"+file.LFN, state.Input{
			Input: input, LFN: file.LFN, PFN: file.PFN, Identity: file.Identity, Stamp: f.Contents.StampOf(file.PFN),
			Part: part,
		})
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// CloseInput closes an open input, or all of them, for a person.
func (f *Feeder) CloseInput(ctx context.Context, name string) error {
	found := false
	for _, in := range f.inputs {
		if in.IsOpen() && (name == "" || in.Name == name) {
			found = true
			if err := f.closeOne(ctx, in); err != nil {
				return err
			}
		}
	}
	if !found && name != "" {
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("the workflow has no input %q that is open", name))
	}
	return nil
}

// closeOne takes what a URL list has when it is closed, its last line without
// an end too.
func (f *Feeder) closeOne(ctx context.Context, in *workflow.DeclaredInput) error {
	if in.URLList == "" || f.isClosed(in.Name) {
		return f.feed(ctx, in.Name, nil, true)
	}
	found, err := f.find.List(ctx, in, true, f.fedTo(in.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return f.feed(ctx, in.Name, nil, true) // flow says that there was none
	}
	if err == nil {
		err = errors.Join(found.Err(), f.find.recordable(found.Files))
	}
	if err != nil {
		return connect.NewError(connect.CodeFailedPrecondition, inInput(in, err))
	}
	return f.feed(ctx, in.Name, found.Files, true)
}
