package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"connectrpc.com/connect"

	"fairway/internal/flow/workflow"
)

// holds are the streams that keep an open run from being closed by one of several who add jobs to it,
// and from ending with the program for which it was opened.
type holds struct {
	mu      sync.Mutex // guards what follows
	n       int
	shut    bool // it takes no more jobs: nobody holds it any more
	closes  bool // it is closed when nobody holds it
	orphans bool // it ends at once when nobody holds it
}

// errRunCloses says that a run takes no more jobs: who wants to add some waits until it has ended, and
// opens it again.
var errRunCloses = connect.NewError(connect.CodeAborted,
	errors.New("the run takes no more jobs; when it has ended, it can be opened again"))

// Hold is part of api.Control.
func (r *run) Hold() (release func(), err error) {
	if !r.config.Workflow.Open() {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("the workflow %s is not open: nobody "+
			"holds it, and it ends when its jobs have", r.config.Workflow.Name))
	}
	h := &r.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shut || r.room.Ending.Asked() {
		return nil, errRunCloses
	}
	h.n++
	return sync.OnceFunc(r.release), nil
}

// release ends a hold. Who was the last does what was put off.
func (r *run) release() {
	h := &r.holds
	h.mu.Lock()
	h.n--
	closes, orphans := h.n == 0 && h.closes, h.n == 0 && h.orphans
	h.shut = h.shut || closes || orphans
	h.mu.Unlock()
	switch {
	case orphans:
		r.Stop(false)
	case closes:
		if err := r.close(context.Background(), ""); err != nil {
			r.server.log.Error("the run could not be closed when the last who added jobs had left", "error", err)
		}
	}
}

// Leave is part of api.Control.
func (r *run) Leave(ctx context.Context) (held int, err error) {
	h := &r.holds
	h.mu.Lock()
	h.closes, held = true, h.n
	h.shut = h.shut || held == 0
	h.mu.Unlock()
	if held > 0 {
		return held, nil
	}
	return 0, r.close(ctx, "")
}

// CloseInput is part of api.Control.
func (r *run) CloseInput(ctx context.Context, name string) error {
	if r.config.Workflow.Open() && (name == "" || name == workflow.SubmittedJobs) {
		r.holds.mu.Lock()
		r.holds.shut = true
		r.holds.mu.Unlock()
	}
	return r.close(ctx, name)
}

// Abandon says that the program has ended for which the run of the folder was opened: it ends at
// once, or when nobody holds it any more.
func (s *Server) Abandon() {
	h := &s.runs.own.holds
	h.mu.Lock()
	h.orphans = true
	ends := h.n == 0
	h.shut = h.shut || ends
	h.mu.Unlock()
	if ends {
		s.Stop(false)
	}
}

// Yield has the run of the folder end when nobody holds it any more. It returns how many do.
func (s *Server) Yield() (held int) {
	h := &s.runs.own.holds
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closes = true
	h.shut = h.shut || h.n == 0
	return h.n
}
