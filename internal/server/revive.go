package server

import (
	"context"
	"errors"
	"slices"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/server/convert"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
)

// surveyFiles finds out, before revive, what became of the files of the run.
func (s *Server) surveyFiles(c *state.Cores) func(context.Context) {
	s.looked = s.files.Look(c)
	return s.looked.Run
}

// tellPerson tells a person at once.
func (s *Server) tellPerson(text string) {
	s.loop.Ending.Note(text)
	s.loop.Notify()
}

// revive is what the cores are told right after they were loaded: what the store
// doesn't keep, and what a person asked of the run while it was not under way.
func (s *Server) revive(c *state.Cores) (*loop.Request, error) {
	r := &loop.Request{Flow: []flow.Input{flow.Tick{}}}
	if _, begun := c.Dispatch.Run(c.Run); !begun || !s.begun {
		r.Dispatch = append(r.Dispatch, s.config.setRun(c.Run))
	}
	s.begun = true
	if known := c.Flow.ReadersKnown(); len(known) > 0 {
		r.Dispatch = append(r.Dispatch, dispatch.ReadersKnown{Run: c.Run, LFNs: known})
	}
	// Inputs may be other files with the contents of before, which pilots are to know
	// again. In a run that begins again all are fed again.
	for name, files := range s.opened.elsewhere {
		if s.opened.decision == runChanged {
			break
		}
		records, err := s.find.Records(name, files)
		if err != nil {
			return r, err
		}
		r.Records = append(r.Records, records...)
		existing := convert.Each(files, func(f flow.InputFile) dispatch.ExistingFile { return f.ExistingFile })
		r.Dispatch = append(r.Dispatch, dispatch.AddFiles{Run: c.Run, Files: existing})
	}
	if len(s.looked.Lost) > 0 {
		r.Dispatch = append(r.Dispatch, dispatch.LoseFiles{Files: s.looked.Lost})
	}
	r.Publish = s.looked.Unpublished
	ends, err := s.pilots.Adopt(context.Background(), c.Dispatch.Launches())
	if err != nil {
		s.log.Warn("taking over pilots", "error", err)
	}
	r.Dispatch = append(r.Dispatch, ends...)
	// Only now, so that no site is blamed for pilots that were killed with their
	// server.
	if s.config.System != nil {
		r.Dispatch = append(r.Dispatch, dispatch.SetSite{Site: s.config.Site})
	}
	for i := range s.config.Sites {
		r.Dispatch = append(r.Dispatch, dispatch.SetSite{Site: s.config.Sites[i].Site})
	}
	failed := slices.DeleteFunc(state.FailedJobs(c), s.opened.run.RetryDeferred)
	if s.retries && len(failed) > 0 {
		r.Dispatch = append(r.Dispatch, dispatch.RetryJobs{Jobs: failed})
	}
	if len(s.opened.run.Deferred) == 0 {
		return r, nil
	}
	// That deferred requests are carried out is durable together with there being
	// none any more.
	r.Dispatch = append(r.Dispatch, s.opened.run.DeferredInputs()...)
	run := *s.opened.run
	run.Deferred = nil
	record, err := run.Record()
	r.Records = append(r.Records, record)
	r.Done = func(err error) {
		if !errors.Is(err, loop.ErrReloaded) { // one that is refused is not wanted any more
			s.opened.run.Deferred = nil
		}
	}
	return r, err
}
