package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"connectrpc.com/connect"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
)

// feeds are the declared inputs of the workflow, and what came of them.
type feeds struct {
	inputs []*flow.DeclaredInput

	mu     sync.Mutex                    // guards what follows
	known  map[string]map[string]bool    // LFNs that have a durable inputRecord, by input
	closed map[string]bool               // durably
	cancel map[string]context.CancelFunc // end the watching of an input
}

func newFeeds(inputs []*flow.DeclaredInput) *feeds {
	f := &feeds{
		inputs: inputs, known: map[string]map[string]bool{},
		closed: map[string]bool{}, cancel: map[string]context.CancelFunc{},
	}
	for _, in := range inputs {
		f.known[in.Name] = map[string]bool{}
	}
	return f
}

func (f *feeds) recorded(records []state.Input) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		if f.known[r.Input] != nil {
			f.known[r.Input][r.LFN] = true
		}
	}
}

// isKnown says which LFNs of an input were fed before.
func (f *feeds) isKnown(input string) func(lfn string) bool {
	return func(lfn string) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.known[input][lfn]
	}
}

// unknown leaves out files that were fed before.
func (f *feeds) unknown(input string, files []flow.InputFile) []flow.InputFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	var fresh []flow.InputFile
	for _, file := range files {
		if !f.known[input][file.LFN] {
			fresh = append(fresh, file)
		}
	}
	return fresh
}

func (f *feeds) fed(input string, files []flow.InputFile, closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range files {
		f.known[input][file.LFN] = true
	}
	if closed {
		f.closed[input] = true
		if cancel := f.cancel[input]; cancel != nil {
			cancel()
		}
	}
}

func (f *feeds) isClosed(input string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed[input]
}

// allClosed says that no more files will come.
func (f *feeds) allClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.closed) == len(f.inputs)
}

// watching gives the context of the goroutine that watches an input; it ends
// when the input is closed.
func (f *feeds) watching(ctx context.Context, input string) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, f.cancel[input] = context.WithCancel(ctx)
	if f.closed[input] {
		f.cancel[input]()
	}
	return ctx
}

// feedLoop feeds the declared inputs, in their order, so that the same files
// give the same run; and then watches those that stay open until they are
// closed or ctx ends.
func (s *Server) feedLoop(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	s.feeds.recorded(s.opened.inputs)
	if s.recallClosed(ctx) != nil {
		return
	}
	for _, in := range s.feeds.inputs {
		if err := s.feedFirst(ctx, in); err != nil {
			s.feedFailed(ctx, err)
			return
		}
	}
	for _, in := range s.feeds.inputs {
		if isOpenInput(in) && !s.feeds.isClosed(in.Name) {
			group.Go(func() {
				if err := s.watch(s.feeds.watching(ctx, in.Name), in); err != nil {
					s.feedFailed(ctx, err)
				}
			})
		}
	}
}

// recallClosed takes note of the inputs that an earlier server closed: what came
// to them since is for the next run.
func (s *Server) recallClosed(ctx context.Context) error {
	return s.inbox.Query(ctx, func(c *state.Cores) {
		for _, in := range s.feeds.inputs {
			if isOpenInput(in) && c.Flow.Closed(in.Name) {
				s.feeds.fed(in.Name, nil, true)
			}
		}
	})
}

// feedFailed ends the run: it cannot be told what comes without its input.
func (s *Server) feedFailed(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, loop.ErrEnded) {
		if err := s.inbox.Fail(ctx, err); err != nil {
			s.log.Error("the run cannot go on", "error", err)
		}
	}
}

// feedFirst feeds what an input has when the run begins. What is complete in an
// open input then comes in its place too, not when its watching happens to begin.
func (s *Server) feedFirst(ctx context.Context, in *flow.DeclaredInput) error {
	if !isOpenInput(in) {
		return s.feed(ctx, in.Name, s.opened.now[in.Name], true)
	}
	switch {
	case s.feeds.isClosed(in.Name):
		return nil
	case in.Close.File == "" && in.Close.Idle == 0 && !in.Close.Manual:
		return s.feedAll(ctx, in)
	}
	ended := s.ended(in)
	files, unsettled, err := s.complete(ctx, in, make(settling))
	if err != nil {
		return err
	}
	return s.feed(ctx, in.Name, files, ended && !unsettled)
}

// feedAll is for an open input without a rule: it is closed once its files
// were enumerated.
func (s *Server) feedAll(ctx context.Context, in *flow.DeclaredInput) error {
	files, err := s.find.find(ctx, in)
	if err != nil {
		return err
	}
	return s.feed(ctx, in.Name, files, true)
}

// feed hands files to flow, together with the record of them, and perhaps
// closes the input.
func (s *Server) feed(ctx context.Context, input string, files []flow.InputFile, last bool) error {
	files = s.feeds.unknown(input, files)
	if len(files) == 0 && !last {
		return nil
	}
	records, err := s.find.records(input, files)
	if err != nil {
		return err
	}
	steps := []flow.Input{flow.Arrived{Input: input, Files: files}}
	if last {
		steps = append(steps, flow.Closed{Input: input})
	}
	err = s.inbox.Deliver(ctx, func() *loop.Request { return &loop.Request{Flow: steps, Records: records} })
	if err != nil {
		return err
	}
	s.feeds.fed(input, files, last)
	return s.inbox.Wake(ctx) // the loop may have waited for the end of the inputs only
}

func (f *finder) records(input string, files []flow.InputFile) ([]dispatch.Record, error) {
	records := make([]dispatch.Record, len(files))
	for i, file := range files {
		var err error
		records[i], err = state.NewRecord(state.InputTable, input+"/"+file.LFN, state.Input{
			Input: input, LFN: file.LFN, PFN: file.PFN, Identity: file.Identity, Stamp: f.contents.stampOf(file.PFN),
		})
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// closeInput closes an open input, or all of them, for a person.
func (s *Server) closeInput(ctx context.Context, name string) error {
	found := false
	for _, in := range s.feeds.inputs {
		if isOpenInput(in) && (name == "" || in.Name == name) {
			found = true
			if err := s.closeOne(ctx, in); err != nil {
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
func (s *Server) closeOne(ctx context.Context, in *flow.DeclaredInput) error {
	if in.URLList == "" || s.feeds.isClosed(in.Name) {
		return s.feed(ctx, in.Name, nil, true)
	}
	found, err := s.find.list(ctx, in, true, s.feeds.isKnown(in.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return s.feed(ctx, in.Name, nil, true) // flow says that there was none
	}
	if err == nil {
		err = errors.Join(found.err(), s.find.recordable(found.files))
	}
	if err != nil {
		return connect.NewError(connect.CodeFailedPrecondition, inInput(in, err))
	}
	return s.feed(ctx, in.Name, found.files, true)
}
