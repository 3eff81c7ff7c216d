package server

import (
	"fairway/internal/dispatch"
	"fairway/internal/flow"
)

// revival is what the cores are told right after they were loaded: what the
// store doesn't keep.
func (s *Server) revival(c *cores) *request {
	site := s.config.Site
	r := &request{
		dispatch: []dispatch.Input{dispatch.SetSite{Site: site}},
		flow:     []flow.Input{flow.Tick{}},
	}
	alive := map[string]bool{}
	for _, launch := range s.pilots.launches() {
		alive[launch] = true
		r.dispatch = append(r.dispatch, dispatch.PilotSubmitted{Site: site.Name, Launch: launch})
	}
	for _, launch := range c.dispatch.Launches() {
		if !alive[launch.Launch] {
			r.dispatch = append(r.dispatch, dispatch.PilotEnded{Launch: launch.Launch, Reason: "it ended while no server ran"})
		}
	}
	if failed := failedJobs(c); s.retries && len(failed) > 0 {
		r.dispatch = append(r.dispatch, dispatch.RetryJobs{Jobs: failed})
	}
	return r
}
