package server

import (
	"context"
	"slices"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/server/convert"
	"fairway/internal/server/state"
)

// revival is what the cores are told right after they were loaded: what the
// store doesn't keep.
func (s *Server) revival(c *state.Cores) *request {
	site := s.config.Site
	r := &request{flow: []flow.Input{flow.Tick{}}}
	if err := s.meetAgain(r); err != nil {
		s.end.broken(err)
	}
	lost := lostFiles(s.folders.Places(), c.Dispatch.Stored)
	if len(lost) > 0 {
		r.dispatch = append(r.dispatch, dispatch.LoseFiles{Files: lost})
	}
	s.restore(c, lost)
	gone, err := s.pilots.adopt(context.Background(), c.Dispatch.Launches())
	if err != nil {
		s.log.Warn("taking over pilots", "error", err)
	}
	for _, end := range gone {
		r.dispatch = append(r.dispatch, dispatch.PilotEnded{Launch: end.Launch, Reason: end.Reason})
	}
	// Only now, so that no site is blamed for pilots that were killed with their
	// server.
	r.dispatch = append(r.dispatch, dispatch.SetSite{Site: site})
	failed := slices.DeleteFunc(state.FailedJobs(c), s.opened.run.RetryDeferred)
	if s.retries && len(failed) > 0 {
		r.dispatch = append(r.dispatch, dispatch.RetryJobs{Jobs: failed})
	}
	if err := s.fulfil(r); err != nil {
		s.end.broken(err)
	}
	return r
}

// meetAgain has pilots know inputs again that are other files with the contents
// of before.
func (s *Server) meetAgain(r *request) error {
	if s.opened.decision == runAgain {
		return nil // they are all fed anew
	}
	for name, files := range s.opened.elsewhere {
		records, err := s.find.records(name, files)
		if err != nil {
			return err
		}
		r.records = append(r.records, records...)
		existing := convert.Each(files, func(f flow.InputFile) dispatch.ExistingFile { return f.ExistingFile })
		r.dispatch = append(r.dispatch, dispatch.AddFiles{Files: existing})
	}
	return nil
}
