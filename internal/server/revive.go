package server

import (
	"context"
	"slices"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
)

// adopt takes over the pilots that outlived the server that started them. It
// returns the ends of those that did not for long.
func (s *Server) adopt(launches []string) (ends []dispatch.Input) {
	alive, err := s.pilots.system.Adopt(s.pilots.strangers(launches))
	if err != nil {
		s.log.Warn("pilots of an earlier run could not be looked for", "error", err)
	}
	return s.pilots.submitted(0, alive)
}

// adoptUnrecorded takes over pilots that a server started and was killed before it
// could record them. Closing the batch system ends them too; one that registers
// meanwhile is told to dispatch then (adoptLoop).
func (s *Server) adoptUnrecorded() {
	alive, err := s.pilots.system.Alive()
	if err == nil {
		_, err = s.pilots.system.Adopt(s.pilots.strangers(alive))
	}
	if err != nil {
		s.log.Warn("pilots of an earlier run could not be looked for", "error", err)
	}
}

// adoptLoop takes over pilots that register and that no record told of, because
// their server was killed as it started them. Without that their end would be
// noticed by their silence only.
func (s *Server) adoptLoop(ctx context.Context) {
	for {
		launches, err := s.out.adopt.take(ctx, s.sched)
		if err != nil {
			return
		}
		if s.tellEnded(ctx, s.adopt(launches)) != nil {
			return
		}
	}
}

// revival is what the cores are told right after they were loaded: what the
// store doesn't keep.
func (s *Server) revival(c *cores) *request {
	site := s.config.Site
	r := &request{flow: []flow.Input{flow.Tick{}}}
	if err := s.meetAgain(r); err != nil {
		s.end.broken(err)
	}
	lost := lostFiles(s.folders.Places(), c.dispatch.Stored)
	if len(lost) > 0 {
		r.dispatch = append(r.dispatch, dispatch.LoseFiles{Files: lost})
	}
	s.restore(c, lost)
	known := c.dispatch.Launches()
	ends := s.adopt(launchNames(known))
	s.adoptUnrecorded()
	alive := map[string]bool{}
	for _, launch := range s.pilots.launches() {
		alive[launch] = true
		r.dispatch = append(r.dispatch, dispatch.PilotSubmitted{Site: site.Name, Launch: launch})
	}
	for _, launch := range known {
		if !alive[launch.Launch] {
			r.dispatch = append(r.dispatch, dispatch.PilotEnded{Launch: launch.Launch, Reason: "it ended while no server ran"})
		}
	}
	r.dispatch = append(r.dispatch, ends...)
	// Only now, so that no site is blamed for pilots that were killed with their
	// server.
	r.dispatch = append(r.dispatch, dispatch.SetSite{Site: site})
	failed := slices.DeleteFunc(failedJobs(c), s.opened.run.wishedAgain)
	if s.retries && len(failed) > 0 {
		r.dispatch = append(r.dispatch, dispatch.RetryJobs{Jobs: failed})
	}
	if err := s.fulfil(r); err != nil {
		s.end.broken(err)
	}
	return r
}

func launchNames(launches []dispatch.LaunchView) []string {
	return each(launches, func(l dispatch.LaunchView) string { return l.Launch })
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
		existing := each(files, func(f flow.InputFile) dispatch.ExistingFile { return f.ExistingFile })
		r.dispatch = append(r.dispatch, dispatch.AddFiles{Files: existing})
	}
	return nil
}
