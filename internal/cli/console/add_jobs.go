package console

import (
	"context"
	"slices"

	"fairway/internal/wire"
)

// AddJobs submits jobs to a run, in as many calls as that takes.
func AddJobs(
	ctx context.Context, client wire.WorkflowClient, jobs []*wire.SubmittedJob, waitAnyway bool,
) (refs []*wire.SubmittedRef, err error) {
	for part := range slices.Chunk(jobs, wire.MaxSubmitted) {
		answer, err := client.Submit(ctx, &wire.SubmitRequest{Jobs: part, WaitAnyway: waitAnyway})
		if err != nil {
			return nil, err
		}
		refs = append(refs, answer.GetJobs()...)
	}
	return refs, nil
}
