package console

import (
	"context"
	"iter"

	"fairway/internal/wire"
)

// AllJobs are the jobs that a request asks for, of all pages. The first error ends them.
func AllJobs(
	ctx context.Context, client wire.WorkflowClient, request *wire.ListJobsRequest,
) iter.Seq2[*wire.JobSummary, error] {
	return func(yield func(*wire.JobSummary, error) bool) {
		for more := true; more; {
			page, err := client.ListJobs(ctx, request)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, job := range page.Jobs {
				request.After = job.Id
				if !yield(job, nil) {
					return
				}
			}
			more = page.More && len(page.Jobs) > 0
		}
	}
}
