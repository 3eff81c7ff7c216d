package web

import (
	"net/http"
	"time"

	"fairway/internal/forecast"
	"fairway/internal/history"
	"fairway/internal/server/api"
	"fairway/internal/wire"
)

// whyJobs is the most executed jobs of which a page tells what set the time; `fairway why` takes its
// time for more. pathShown is how many jobs of the path it lists.
const (
	whyJobs   = 5000
	pathShown = 100
)

type whyBody struct {
	Run     api.Page
	TooMany bool
	Why     *history.Why // nil: nothing was executed
	Span    time.Duration
	Causes  []history.Cause
	Path    []*history.Job
	Times   map[*history.Job]time.Duration // of the jobs of the path
	WhatIf  *whatIf                        // nil: too many jobs were executed
}

// Runs of up to foretoldJobs executed jobs are foretold on the page, with so many draws.
const (
	foretoldJobs  = 1000
	foretoldDraws = 4
)

// explain takes what a run tells. After an error, which is that of a replay, nothing is foretold.
func (b *whyBody) explain(run *history.Run) (err error) {
	if b.Why = run.Explain(); b.Why == nil {
		return nil
	}
	b.Span = b.Why.End.Sub(b.Why.Begin)
	b.Path = b.Why.Path[:min(len(b.Why.Path), pathShown)]
	b.Times = map[*history.Job]time.Duration{}
	for _, part := range b.Why.Parts {
		b.Times[part.Job] += part.To.Sub(part.From)
	}
	b.WhatIf, err = foretold(run)
	return err
}

// whatIf is how long the run would have taken under other conditions.
type whatIf struct {
	*forecast.Model
	Cases []*forecast.Forecast
}

func foretold(run *history.Run) (*whatIf, error) {
	if len(run.Jobs) > foretoldJobs {
		return nil, nil
	}
	model, err := forecast.Of(run)
	if err != nil {
		return nil, err
	}
	w := &whatIf{Model: model}
	for _, change := range model.Usual() {
		f, err := model.Foretell(change, foretoldDraws)
		if err != nil {
			return nil, err
		}
		w.Cases = append(w.Cases, f)
	}
	return w, nil
}

// why tells what set the time of a run, as far as it has come. It is not kept up to date.
func (s *site) why(r *http.Request) (*content, error) {
	c, o, err := s.about(r)
	if err != nil {
		return nil, err
	}
	c.Over = true
	body := &whyBody{Run: c.Run, Causes: history.Causes}
	c.Title, c.Body = "What set the time", body
	if body.TooMany = o.Report.GetSummary().GetAttempts() > whyJobs; body.TooMany {
		return c, nil
	}
	run := &history.Run{}
	for after, more := uint32(0), true; more; {
		list, err := s.Service.ListJobs(r.Context(), &wire.ListJobsRequest{Run: uint32(c.Run), After: after})
		if err != nil {
			return nil, err
		}
		for _, summary := range list.GetJobs() {
			if after = summary.GetId(); summary.GetAttempts() == 0 {
				continue
			}
			if body.TooMany = len(run.Jobs) == whyJobs; body.TooMany {
				return c, nil
			}
			detail, err := s.Service.ShowJob(r.Context(), &wire.ShowJobRequest{Run: uint32(c.Run), Job: summary.GetName()})
			if err != nil {
				return nil, err
			}
			run.Jobs = append(run.Jobs, history.Of(detail))
		}
		more = list.GetMore() && len(list.GetJobs()) > 0
	}
	if err := body.explain(run); err != nil {
		s.Log.Warn("a run cannot be foretold", "run", uint32(c.Run), "error", err)
	}
	return c, nil
}
