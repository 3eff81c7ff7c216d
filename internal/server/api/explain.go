package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"fairway/internal/explain"
	"fairway/internal/rights"
	"fairway/internal/server/convert"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// Explain says why a job is not running.
func (s *Service) Explain(ctx context.Context, r *wire.ExplainRequest) (*wire.ExplainResponse, error) {
	a, err := s.of(ctx, r)
	if err != nil {
		return nil, err
	}
	var response *wire.ExplainResponse
	var job taskqueue.JobDetail
	err = a.lookAtJob(ctx, r, func(c *state.Cores, id taskqueue.JobID) error {
		e, _ := c.Dispatch.Explain(id)
		job, _ = c.Dispatch.Detail(id)
		response = &wire.ExplainResponse{
			Summary:   summaryOf(c, &e.JobView),
			Lines:     explain.Lines(&e),
			WaitsFor:  convert.Each(e.WaitsFor.First, waitsForToWire),
			Missing:   e.Missing,
			TakenFrom: originToWire(e.Taken),
		}
		if a.control == nil {
			a.explainRest(c, e.State, response)
		} else if e.State == taskqueue.Ready {
			response.Lines = append(response.Lines, a.control.PilotsWaiting()...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if a.control == nil && job.State == taskqueue.Done { // a server looks when it begins, and whenever a job reads
		lost, err := a.lostOutputs(ctx, &wire.RetryRequest{Run: r.GetRun(), Jobs: []string{job.Name}})
		if err != nil {
			return nil, rpcError(err)
		}
		for _, pfn := range slices.Sorted(maps.Keys(lost)) {
			response.Lines = append(response.Lines, fmt.Sprintf("a stored file is lost: %s: %s; it is made again when a job "+
				"needs it, or with fairway retry", lost[pfn].File.LFN, lost[pfn].Why))
		}
	}
	if line := streamedText(job.Reads); line != "" {
		response.Lines = append(response.Lines, line)
	}
	why, err := a.whyNotReused(ctx, &job)
	response.Lines = append(response.Lines, why...)
	return response, rpcError(err)
}

const maxStreamedNamed = 3

// streamedText tells which files a job may stream, or is empty. Only its pilot knows what the
// node has.
func streamedText(reads []taskqueue.FileView) string {
	var names []string
	for i := range reads {
		if reads[i].Access == taskqueue.AccessStream {
			names = append(names, reads[i].File.LFN)
		}
	}
	if n := len(names) - maxStreamedNamed; n > 0 {
		names = append(names[:maxStreamedNamed], fmt.Sprintf("%d more", n))
	}
	if len(names) == 0 {
		return ""
	}
	return "its command may stream " + strings.Join(names, ", ") +
		" from where that is stored; a copy that the node has comes first"
}

// whyNotReused tells why a job runs, or has run, although there was an earlier
// result of it.
func (a *view) whyNotReused(ctx context.Context, job *taskqueue.JobDetail) ([]string, error) {
	if job.Reused || !a.knowsAll(ctx) { // whose result it was is not recorded
		return nil, nil
	}
	earlier, err := a.run.Provenance(ctx, job.Name, "")
	if err != nil || earlier == nil {
		return nil, err
	}
	payload := new(wire.Payload)
	if err := proto.Unmarshal(job.Payload, payload); err != nil {
		return nil, err
	}
	changes := ChangesSince(earlier, job, payload)
	if len(changes) == 0 {
		return nil, nil
	}
	return append([]string{"the result of an earlier run was not taken:"},
		convert.Each(changes, func(line string) string { return "  " + line })...), nil
}

// knowsAll reports whether who asks may know of the runs of all.
func (a *view) knowsAll(ctx context.Context) bool {
	return a.server == nil || rights.Of(ctx).Role == rights.Admin
}

// explainRest is for jobs that wait for a run above all.
func (a *view) explainRest(c *state.Cores, of taskqueue.State, response *wire.ExplainResponse) {
	const goesOn = "nothing runs in this folder: `fairway run` goes on"
	var last wire.ProgressReport
	last.Summary = &wire.Summary{}
	a.run.Report(&last, c)
	switch {
	case of == taskqueue.Ready:
		response.Lines, response.Missing = []string{"ready; " + goesOn}, nil
	case of == taskqueue.Waiting:
		response.Lines = append(response.Lines, goesOn)
	default:
		return
	}
	for _, problem := range last.Problems {
		response.Lines = append(response.Lines, "the last run ended: "+problem)
	}
	if a.survivors != nil && a.survivors() > 0 {
		response.Lines = append(response.Lines, "pilots of a run that was cut short still compute, and may run it: "+
			"`fairway run` takes them over")
	}
}

func waitsForToWire(w taskqueue.WaitsFor) *wire.WaitsFor {
	return &wire.WaitsFor{
		Lfn:     w.File.LFN,
		Version: uint32(w.File.Version),
		Job:     w.Job.Number(),
		Name:    w.Name,
		State:   w.State.String(),
	}
}
