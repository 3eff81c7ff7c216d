package api

import (
	"context"
	"slices"

	"fairway/internal/dispatch/records"
	"fairway/internal/server/state"
	"fairway/internal/store"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// ListingPage is how many jobs a listing reads at a time.
const ListingPage = 256

type listing struct {
	records  store.Store
	run      taskqueue.RunID
	request  *wire.ListJobsRequest
	response *wire.ListJobsResponse // with its totals
	hosts    state.Hosts
}

// all returns nil if a job that may be listed depends on others.
func (l *listing) all(ctx context.Context) (*wire.ListJobsResponse, error) {
	pilots, err := l.records.Load(ctx, state.HostTable)
	if err != nil {
		return nil, err
	}
	l.hosts = state.LoadHosts(pilots)
	for first := taskqueue.NewJobID(l.run, l.request.GetAfter()) + 1; !l.complete(); first += ListingPage {
		jobs, err := l.page(ctx, first)
		if err != nil {
			return nil, err
		}
		for i := range jobs {
			if known, err := l.take(ctx, &jobs[i]); err != nil || !known {
				return nil, err
			}
		}
		if len(jobs) < ListingPage {
			break
		}
	}
	return l.response, nil
}

// complete reports whether no further job changes the response.
func (l *listing) complete() bool {
	return l.response.More || l.request.GetAfter() == 0 && int64(len(l.response.Jobs)) == l.response.Total
}

func (l *listing) page(ctx context.Context, first taskqueue.JobID) ([]records.RecordedJob, error) {
	bodies := map[string]map[string][]byte{}
	var keys []taskqueue.Record
	for _, table := range []string{records.TableCommit, records.TableFate, records.TableJob} {
		records, err := l.records.LoadPart(ctx, table, l.run, records.JobKey(first),
			records.JobKey(first+ListingPage), ListingPage)
		if err != nil {
			return nil, err
		}
		bodies[table] = map[string][]byte{}
		for _, r := range records {
			bodies[table][r.Key] = r.Body
		}
		keys = records
	}
	jobs := make([]records.RecordedJob, len(keys))
	for i, r := range keys {
		jobs[i] = records.RecordedJob{
			ID: first + taskqueue.JobID(i), Job: r.Body, Commit: bodies[records.TableCommit][r.Key],
			Fate: bodies[records.TableFate][r.Key],
		}
	}
	return jobs, nil
}

// take lists a job if it is asked for. known is false if its state is asked for,
// and not known.
func (l *listing) take(ctx context.Context, r *records.RecordedJob) (known bool, err error) {
	state, known, err := r.State()
	if err != nil || !known {
		others := []taskqueue.State{taskqueue.Waiting, taskqueue.Ready, taskqueue.Blocked} // which depend on other jobs
		return !slices.ContainsFunc(others, func(s taskqueue.State) bool { return stateAsked(l.request, s.String()) }), err
	}
	if l.complete() || !stateAsked(l.request, state.String()) {
		return true, nil
	}
	job, err := r.View()
	if err != nil || !stepAsked(l.request, job.Step) {
		return true, err
	}
	if len(l.response.Jobs) == listLimit(l.request) {
		l.response.More = true
		return true, nil
	}
	summary, err := l.summary(ctx, &job)
	l.response.Jobs = append(l.response.Jobs, summary)
	return true, err
}

func (l *listing) summary(ctx context.Context, job *taskqueue.JobView) (*wire.JobSummary, error) {
	tally, err := state.LoadTallyOf(ctx, l.records, job.ID, l.hosts)
	if err != nil {
		return nil, err
	}
	return summaryOf(&state.Cores{Tally: tally}, job), nil
}
