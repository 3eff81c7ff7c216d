package server

import (
	"context"

	"fairway/internal/dispatch"
	"fairway/internal/wire"
)

// Explain says why a job is not running.
func (a *api) Explain(ctx context.Context, r *wire.ExplainRequest) (*wire.ExplainResponse, error) {
	var response *wire.ExplainResponse
	err := a.lookAt(ctx, func(c *cores) error {
		id, err := findJob(c.dispatch, r.GetJob())
		if err != nil {
			return err
		}
		e, _ := c.dispatch.Explain(id)
		response = &wire.ExplainResponse{
			Summary:  summaryOf(c, &e.JobView),
			Lines:    e.Lines,
			WaitsFor: each(e.WaitsFor, waitsForToWire),
			Missing:  e.Missing,
		}
		if a.control == nil {
			a.explainRest(e.State, response)
		}
		return nil
	})
	return response, err
}

// explainRest is for jobs that wait for a run above all.
func (a *api) explainRest(state dispatch.State, response *wire.ExplainResponse) {
	const goesOn = "nothing runs in this folder: `fairway run` goes on"
	switch {
	case state == dispatch.Ready:
		response.Lines, response.Missing = []string{"ready; " + goesOn}, nil
	case state == dispatch.Waiting:
		response.Lines = append(response.Lines, goesOn)
	default:
		return
	}
	if a.survivors != nil && a.survivors() > 0 {
		response.Lines = append(response.Lines, "pilots of a run that was cut short still compute, and may run it: `fairway run` takes them over")
	}
}

func waitsForToWire(w dispatch.WaitsFor) *wire.WaitsFor {
	return &wire.WaitsFor{
		Lfn:     w.File.LFN,
		Version: uint32(w.File.Version),
		Job:     uint64(w.Job),
		Name:    w.Name,
		State:   w.State.String(),
	}
}
