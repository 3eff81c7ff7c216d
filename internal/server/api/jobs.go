package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/server/convert"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// DefaultJobsListed is how many jobs ListJobs returns when it is not told.
const DefaultJobsListed = 1000

// ListJobs lists jobs in the order of their submission.
func (s *Service) ListJobs(ctx context.Context, r *wire.ListJobsRequest) (*wire.ListJobsResponse, error) {
	a, err := s.of(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := a.knowsSteps(r.GetSteps()); err != nil {
		return nil, err
	}
	response, err := a.run.List(ctx, r)
	if response != nil || err != nil {
		return response, rpcError(err)
	}
	err = rpcError(a.run.QueryAll(ctx, func(c *state.Cores) {
		response = ListOf(c, r)
		response.Now = convert.InstantToWire(state.Now())
	}))
	if err == nil && a.control != nil {
		noteWaiting(response.Jobs, a.control.PilotsWaiting())
	}
	return response, err
}

func (a *view) knowsSteps(names []string) error {
	steps := a.run.Steps()
	if len(steps) == 0 {
		return nil // of an open run, whose jobs say what their steps are
	}
	for _, name := range names {
		if !slices.Contains(steps, name) {
			return connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no step %q; the steps are %s", name,
				strings.Join(steps, ", ")))
		}
	}
	return nil
}

// noteWaiting tells of jobs that are ready why pilots for them are not there yet.
func noteWaiting(jobs []*wire.JobSummary, why []string) {
	for _, job := range jobs {
		if job.State == taskqueue.Ready.String() && len(job.Notes) == 0 {
			job.Notes = why
		}
	}
}

// ListOf answers ListJobs from all jobs.
func ListOf(c *state.Cores, r *wire.ListJobsRequest) *wire.ListJobsResponse {
	response := listOfTotals(c.Dispatch.Steps(c.Run), r)
	limit := listLimit(r)
	for job := range c.Dispatch.Jobs(c.Run, r.GetAfter()) {
		if !stateAsked(r, job.State.String()) || !stepAsked(r, job.Step) {
			continue
		}
		if len(response.Jobs) == limit {
			response.More = true
			break
		}
		response.Jobs = append(response.Jobs, summaryOf(c, &job))
	}
	return response
}

func listOfTotals(steps []taskqueue.StepTotals, r *wire.ListJobsRequest) *wire.ListJobsResponse {
	response := &wire.ListJobsResponse{ByState: map[string]int64{}}
	for _, step := range steps {
		if !stepAsked(r, step.Step) {
			continue
		}
		for state, n := range step.ByState {
			if n > 0 {
				response.ByState[taskqueue.State(state).String()] += int64(n)
			}
		}
	}
	for state, n := range response.ByState {
		if stateAsked(r, state) {
			response.Total += n
		}
	}
	return response
}

func listLimit(r *wire.ListJobsRequest) int {
	if r.GetLimit() <= 0 {
		return DefaultJobsListed
	}
	return int(r.GetLimit())
}

func stateAsked(r *wire.ListJobsRequest, state string) bool {
	return len(r.GetStates()) == 0 || slices.Contains(r.GetStates(), state)
}

func stepAsked(r *wire.ListJobsRequest, step string) bool {
	return len(r.GetSteps()) == 0 || slices.Contains(r.GetSteps(), step)
}

func summaryOf(c *state.Cores, job *taskqueue.JobView) *wire.JobSummary {
	tries := c.Tally.Attempts.Count(job.ID) + len(job.Attempts)
	if job.Tasks > 0 {
		tries -= max(0, len(job.Attempts)-1) // tasks of one attempt
	}
	last := c.Tally.Attempts.Last(job.ID)
	pilot, usage := taskqueue.PilotID(last.GetPilot()), last.GetResult().GetUsage()
	started, ended := usage.GetStart(), usage.GetEnd()
	for i, attempt := range job.Attempts {
		if job.Tasks == 0 || i == 0 {
			pilot = attempt.Pilot
		}
		started, ended = convert.InstantToWire(c.Tally.Started[job.ID]), nil
	}
	return &wire.JobSummary{
		Run:       uint32(job.ID.Run()),
		Id:        job.ID.Number(),
		Name:      job.Name,
		Step:      job.Step,
		State:     job.State.String(),
		Attempts:  int32(tries),
		Reason:    job.Reason,
		Pilot:     string(pilot),
		Host:      c.Tally.Hosts[pilot],
		Submitted: convert.InstantToWire(job.Submitted),
		Started:   started,
		Ended:     ended,
		Reused:    job.Reused,
		Notes:     last.GetResult().GetNotes(),
		Silent:    silentSince(job.Attempts),
		Tasks:     int32(job.Tasks),
	}
}

// silentSince is since when no pilot is heard that has an attempt of a job; nil: one is.
func silentSince(attempts []taskqueue.AttemptView) *timestamppb.Timestamp {
	var since time.Time
	for _, a := range attempts {
		if a.Silent.IsZero() {
			return nil
		}
		if since.IsZero() || a.Silent.After(since) {
			since = a.Silent
		}
	}
	return convert.InstantToWire(since)
}

// ShowJob tells all that is known of one job.
func (s *Service) ShowJob(ctx context.Context, r *wire.ShowJobRequest) (*wire.JobDetail, error) {
	a, err := s.of(ctx, r)
	if err != nil {
		return nil, err
	}
	var detail *wire.JobDetail
	var key, maker string
	err = a.lookAtJob(ctx, r, func(c *state.Cores, id taskqueue.JobID) (err error) {
		job, _ := c.Dispatch.Detail(id)
		key, maker = job.Key, makerOf(&job)
		detail, err = detailOf(c, &job)
		return err
	})
	if err != nil || !detail.Summary.Reused {
		return detail, err
	}
	made, err := a.run.Provenance(ctx, maker, key)
	if err == nil && made.GetAttempt() != nil {
		detail.Attempts = append([]*wire.AttemptDetail{made.Attempt}, detail.Attempts...)
	}
	return detail, rpcError(err)
}

// makerOf is the name of the job that made the result which a job has.
func makerOf(job *taskqueue.JobDetail) string {
	if job.Taken != nil {
		return job.Taken.Job
	}
	return job.Name
}

func originToWire(o *taskqueue.Origin) *wire.ResultOrigin {
	if o == nil {
		return nil
	}
	return &wire.ResultOrigin{Run: uint32(o.Run), User: o.Account.User, Group: o.Account.Group, Job: o.Job}
}

func detailOf(c *state.Cores, job *taskqueue.JobDetail) (*wire.JobDetail, error) {
	payload := new(wire.Payload)
	if err := proto.Unmarshal(job.Payload, payload); err != nil {
		return nil, err
	}
	attempts, err := c.Tally.Attempts.Of(job.ID)
	if err != nil {
		return nil, err
	}
	ended := len(attempts)
	for i, live := range job.Attempts {
		try := ended + 1
		if job.Tasks == 0 {
			try += i
		}
		attempts = append(attempts, &wire.AttemptDetail{
			Attempt: uint64(live.Attempt), Try: int32(try), Pilot: string(live.Pilot), Outcome: live.Phase.String(),
			Task: int32(live.Task),
		})
	}
	for _, attempt := range attempts {
		if attempt.Result != nil {
			attempt.Task = attempt.Result.Task
		}
		attempt.Host = c.Tally.Hosts[taskqueue.PilotID(attempt.GetPilot())]
	}
	return &wire.JobDetail{
		Summary:           summaryOf(c, &job.JobView),
		Payload:           payload,
		Needs:             convert.ResourcesToWire(job.Needs),
		Site:              job.Site,
		Priority:          int32(job.Priority),
		EffectivePriority: int32(job.Effective),
		Reads:             convert.Each(job.Reads, fileDetail),
		Writes:            convert.Each(job.Writes, fileDetail),
		Attempts:          attempts,
		TakenFrom:         originToWire(job.Taken),
	}, nil
}

func fileDetail(f taskqueue.FileView) *wire.FileDetail {
	access := ""
	if f.Access != taskqueue.AccessLink {
		access = f.Access.String()
	}
	return &wire.FileDetail{
		Access:    access,
		Lfn:       f.File.LFN,
		Version:   uint32(f.File.Version),
		Size:      f.Size,
		Pfn:       storage.Shown(f.PFN),
		Available: f.Available,
		Published: f.Published,
		Pattern:   f.Pattern,
		Writer:    f.Writer.Number(),
		Temporary: f.Temporary,
	}
}
