package console

import (
	"context"

	"google.golang.org/protobuf/proto"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// maxEarlier is how many jobs are looked at for those that had ended before a call added its own. Beyond
// them the progress of the call counts the whole run.
const maxEarlier = 20_000

// ofCall finds out what part of a report is about the jobs of a call: without Own it is all. Where that cannot be
// found out any more, it counts none.
func (c *Console) ofCall(
	ctx context.Context, client wire.WorkflowClient,
) <-chan func(*wire.ProgressReport) *wire.ProgressReport {
	found := make(chan func(*wire.ProgressReport) *wire.ProgressReport, 1)
	if c.Own == nil {
		found <- func(report *wire.ProgressReport) *wire.ProgressReport { return report }
		return found
	}
	go func() {
		earlier, err := endedBefore(ctx, client, c.Own)
		found <- func(report *wire.ProgressReport) *wire.ProgressReport {
			if err == nil {
				return without(report, earlier)
			}
			report = proto.CloneOf(report)
			report.Steps = nil
			return report
		}
	}()
	return found
}

// endedBefore counts, for each step, the jobs of a run that have ended and are none of a call's own.
func endedBefore(
	ctx context.Context, client wire.WorkflowClient, own map[string]bool,
) (map[string]*wire.StepProgress, error) {
	earlier := map[string]*wire.StepProgress{}
	ended := []string{
		taskqueue.Done.String(), taskqueue.Failed.String(), taskqueue.Blocked.String(), taskqueue.Cancelled.String(),
	}
	seen := 0
	for job, err := range AllJobs(ctx, client, &wire.ListJobsRequest{States: ended}) {
		if err != nil {
			return nil, err
		}
		if seen++; seen > maxEarlier {
			return nil, nil
		}
		if own[job.GetName()] {
			continue
		}
		step := earlier[job.GetStep()]
		if step == nil {
			step = &wire.StepProgress{}
			earlier[job.GetStep()] = step
		}
		step.Total++
		switch job.GetState() {
		case taskqueue.Done.String():
			step.Done++
			if job.GetReused() {
				step.Reused++
			}
		case taskqueue.Failed.String():
			step.Failed++
		case taskqueue.Blocked.String():
			step.Blocked++
		default:
			step.Cancelled++
		}
	}
	return earlier, nil
}

// without is a report without the jobs that had ended before. Of those that a person has tried again
// meanwhile it knows no more than that they are there.
func without(report *wire.ProgressReport, earlier map[string]*wire.StepProgress) *wire.ProgressReport {
	if len(earlier) == 0 {
		return report
	}
	rest := proto.CloneOf(report)
	rest.Steps = nil
	for _, step := range report.GetSteps() {
		if before := earlier[step.GetStep()]; before != nil {
			step = proto.CloneOf(step)
			for _, part := range []struct {
				count *int64
				less  int64
			}{
				{&step.Total, before.Total}, {&step.Done, before.Done}, {&step.Reused, before.Reused},
				{&step.Failed, before.Failed}, {&step.Blocked, before.Blocked}, {&step.Cancelled, before.Cancelled},
			} {
				*part.count = max(0, *part.count-part.less)
			}
			if step.Total == 0 {
				continue
			}
		}
		rest.Steps = append(rest.Steps, step)
	}
	return rest
}
