package server

import (
	"context"
	"errors"
	"slices"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/convert"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// surveyFiles finds out, before revive, what became of the files of the runs.
func (s *Server) surveyFiles(core *dispatch.Core) func(context.Context) {
	s.looked = s.storage.Look(core)
	for _, r := range s.runs.all() {
		s.looked.Published(core, r.room.Run, r.results)
	}
	return s.looked.Run
}

func (s *Server) tellPerson(text string) {
	for _, r := range s.runs.all() {
		r.room.Ending.Note(text)
	}
	s.loop.Notify()
}

// revive is what the cores are told right after they were loaded: what the store
// doesn't keep, and what a person asked of a run while it was not under way. What is of
// a run stands before and behind what is of the pilots, which may end attempts of any.
func (s *Server) revive(core *dispatch.Core) (requests []*loop.Request, err error) {
	runs := s.runs.all()
	for _, r := range runs {
		request, err := r.goOn(core)
		requests = append(requests, request)
		if err != nil {
			return requests, err
		}
	}
	requests = append(requests, s.revivePilots(core))
	for _, r := range runs {
		request, err := r.carryOut()
		requests = append(requests, request)
		if err != nil {
			return requests, err
		}
	}
	return requests, nil
}

func (r *run) goOn(core *dispatch.Core) (*loop.Request, error) {
	id := r.room.Run
	request := &loop.Request{Run: id}
	if _, begun := core.Run(id); r.concluded.Load() == nil && (!begun || !r.begun) {
		request.Dispatch = append(request.Dispatch, r.config.setRun(id))
	}
	r.begun = true
	if known := r.room.Flow.ReadersKnown(); len(known) > 0 {
		request.Dispatch = append(request.Dispatch, taskqueue.ReadersKnown{Run: id, LFNs: known})
	}
	// Inputs may be other files with the contents of before, which pilots are to know
	// again. In a run that begins again all are fed again.
	for name, files := range r.opened.elsewhere {
		if r.opened.decision == runChanged {
			break
		}
		records, err := r.find.Records(name, files, false)
		if err != nil {
			return request, err
		}
		request.Records = append(request.Records, records...)
		existing := convert.Each(files, func(f flow.InputFile) taskqueue.ExistingFile { return f.ExistingFile })
		request.Dispatch = append(request.Dispatch, taskqueue.AddFiles{Run: id, Files: existing})
	}
	return request, nil
}

// revivePilots tells of stored files that are lost, of the pilots that are there, and then of the
// sites: no site is blamed for pilots that were killed with their server.
func (s *Server) revivePilots(core *dispatch.Core) *loop.Request {
	request := &loop.Request{Publish: s.looked.Unpublished}
	request.Dispatch = append(request.Dispatch, s.sharing.said()...)
	if why := s.space.held.Load(); why != nil {
		request.Dispatch = append(request.Dispatch, taskqueue.HoldJobs{Why: *why})
	}
	if len(s.looked.Lost) > 0 {
		request.Dispatch = append(request.Dispatch, taskqueue.LoseFiles{Files: s.looked.Lost})
	}
	ends, err := s.pilots.Adopt(context.Background(), core.Launches())
	if err != nil {
		s.log.Warn("taking over pilots", "error", err)
	}
	request.Dispatch = append(request.Dispatch, ends...)
	if s.config.System != nil {
		request.Dispatch = append(request.Dispatch, taskqueue.SetSite{Site: s.config.Site})
	}
	for i := range s.config.Sites {
		request.Dispatch = append(request.Dispatch, taskqueue.SetSite{Site: s.config.Sites[i].Site})
	}
	return request
}

// carryOut tries again what failed, and does what a person asked of the run while it was not
// under way. That this is done is durable together with there being no such request any more.
func (r *run) carryOut() (*loop.Request, error) {
	request := &loop.Request{Run: r.room.Run, Flow: []flow.Input{flow.Tick{}}}
	if r.opened.run.Closed {
		request.Flow = append(request.Flow, flow.Closed{Input: workflow.SubmittedJobs})
	}
	failed := slices.DeleteFunc(state.FailedJobs(&r.room.Cores), r.opened.run.RetryDeferred)
	if r.retries && len(failed) > 0 {
		request.Dispatch = append(request.Dispatch, taskqueue.RetryJobs{Jobs: failed})
	}
	if len(r.opened.run.Deferred) == 0 {
		return request, nil
	}
	request.Dispatch = append(request.Dispatch, r.opened.run.DeferredInputs()...)
	run := *r.opened.run
	run.Deferred = nil
	record, err := run.Record()
	request.Records = append(request.Records, record)
	request.Done = func(err error) {
		if !errors.Is(err, loop.ErrReloaded) { // one that is refused is not wanted any more
			r.opened.run.Deferred = nil
		}
	}
	return request, err
}
