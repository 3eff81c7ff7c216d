package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// searchPiece is how many jobs are looked at before the loop may do something else.
const searchPiece = 8192

// JobSearch says which jobs of a run are wanted: those that have all that is given.
type JobSearch struct {
	State, Step string
	Text        string // in the name, in lower or upper case
	Message     string // of jobs that failed: as FailureGroup.Message
	After       uint32 // numbers above
	Before      uint32 // numbers below, the last ones of them; 0: none is wanted
	Limit       int

	literal string // the longest part of Message that a reason has as it is
}

func (q *JobSearch) fits(job *taskqueue.JobView) bool {
	return (q.State == "" || job.State.String() == q.State) && (q.Step == "" || job.Step == q.Step) &&
		(q.Text == "" || strings.Contains(strings.ToLower(job.Name), q.Text)) &&
		(q.Message == "" || strings.Contains(job.Reason, q.literal) && alike(job.Name, job.Reason) == q.Message)
}

// FoundJobs are some of the jobs that were searched for.
type FoundJobs struct {
	Jobs         []*wire.JobSummary
	Before, More bool             // there are others, with lower or higher numbers
	ByState      map[string]int64 // all jobs of the step
	Now          time.Time        // by the clock of the started of jobs that run
}

// SearchJobs finds jobs, in the order of their numbers.
func (s *Service) SearchJobs(ctx context.Context, run Page, q JobSearch) (*FoundJobs, error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	q.Text = strings.ToLower(q.Text)
	for _, part := range replaced.Split(q.Message, -1) {
		if len(part) > len(q.literal) {
			q.literal = part
		}
	}
	found := &FoundJobs{Now: state.Now()}
	if plain := q.Text == "" && q.Message == "" && q.Before == 0; plain {
		if done, err := a.listed(ctx, &q, found); done || err != nil {
			return found, rpcError(err)
		}
	}
	var running []uint32
	err = a.run.QueryAll(ctx, func(c *state.Cores) {
		r := &wire.ListJobsRequest{}
		if q.Step != "" {
			r.Steps = []string{q.Step}
		}
		found.ByState = listOfTotals(c.Dispatch.Steps(c.Run), r).ByState
		if q.State == taskqueue.Running.String() {
			for id := range c.Tally.Started {
				running = append(running, id.Number())
			}
		}
	})
	if err != nil {
		return nil, rpcError(err)
	}
	slices.Sort(running)
	if q.State != "" && found.ByState[q.State] == 0 {
		return found, nil
	}
	if q.Before > 0 {
		err = a.searchBack(ctx, &q, found)
	} else if q.State == taskqueue.Running.String() && a.control != nil {
		err = a.searchAmong(ctx, &q, found, running)
	} else {
		err = a.searchOn(ctx, &q, found)
	}
	found.Before = found.Before || q.After > 0
	return found, rpcError(err)
}

// listed finds jobs of a run that has ended by their records alone, if that can be.
func (a *view) listed(ctx context.Context, q *JobSearch, found *FoundJobs) (done bool, err error) {
	r := &wire.ListJobsRequest{Limit: int32(q.Limit), After: q.After}
	if q.State != "" {
		r.States = []string{q.State}
	}
	if q.Step != "" {
		r.Steps = []string{q.Step}
	}
	response, err := a.run.List(ctx, r)
	if response == nil || err != nil {
		return false, err
	}
	found.Jobs, found.More, found.ByState = response.Jobs, response.More, response.ByState
	found.Before = q.After > 0
	return true, nil
}

func (a *view) searchOn(ctx context.Context, q *JobSearch, found *FoundJobs) error {
	for after, more := q.After, true; more; {
		more = false
		err := a.run.QueryAll(ctx, func(c *state.Cores) {
			looked := 0
			for job := range c.Dispatch.Jobs(c.Run, after) {
				after = job.ID.Number()
				if q.fits(&job) {
					if len(found.Jobs) == q.Limit {
						found.More = true
						return
					}
					found.Jobs = append(found.Jobs, summaryOf(c, &job))
				}
				if looked++; looked == searchPiece {
					more = true
					return
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// searchBack looks at the jobs with lower numbers, the highest first.
func (a *view) searchBack(ctx context.Context, q *JobSearch, found *FoundJobs) error {
	found.More = true
	for number := q.Before - 1; number > 0 && !found.Before; {
		err := a.run.QueryAll(ctx, func(c *state.Cores) {
			for looked := 0; number > 0 && looked < searchPiece; looked++ {
				job, ok := c.Dispatch.Job(taskqueue.NewJobID(c.Run, number))
				number--
				if !ok || !q.fits(&job) {
					continue
				}
				if len(found.Jobs) == q.Limit {
					found.Before = true
					return
				}
				found.Jobs = append(found.Jobs, summaryOf(c, &job))
			}
		})
		if err != nil {
			return err
		}
	}
	slices.Reverse(found.Jobs)
	return ctx.Err()
}

func (a *view) searchAmong(ctx context.Context, q *JobSearch, found *FoundJobs, numbers []uint32) error {
	for piece := range slices.Chunk(numbers, searchPiece) {
		err := a.run.QueryAll(ctx, func(c *state.Cores) {
			for _, number := range piece {
				job, ok := c.Dispatch.Job(taskqueue.NewJobID(c.Run, number))
				if !ok || number <= q.After || !q.fits(&job) {
					continue
				}
				if len(found.Jobs) == q.Limit {
					found.More = true
					return
				}
				found.Jobs = append(found.Jobs, summaryOf(c, &job))
			}
		})
		if err != nil || found.More {
			return err
		}
	}
	return nil
}

// FailureGroup are jobs that failed for the same reason, as far as its text tells.
type FailureGroup struct {
	Message string // without what differs from job to job
	Jobs    int64
	Steps   []string // of them, at most stepsTold
	Others  bool     // there are further ones
	Job     uint32   // one of them, with its name and the beginning of its reason
	Name    string
	Reason  string
}

// FailureGroups are the jobs of a run that failed, each in one group or in the rest.
type FailureGroups struct {
	Groups   []*FailureGroup // the largest first
	Rest     int64           // jobs of smaller groups
	Messages int             // of the rest, as far as they were told apart
}

// Bounds of Failures.
const (
	failureGroups    = 200
	messagesCompared = 10_000 // jobs with further ones are of the rest
	stepsTold        = 5
	failuresRest     = 50 // between two looks at all jobs passes so many times as long as one takes
)

// failuresSeen are the answers of Failures, for a while.
type failuresSeen struct {
	mu   sync.Mutex // guards runs, and is held while one looks
	runs map[Page]*failuresOf
}

type failuresOf struct {
	failed   int
	attempts int64     // of the run that had ended
	until    time.Time // another look is not taken
	groups   *FailureGroups
}

// Failures groups the jobs that failed by their reasons.
func (s *Service) Failures(ctx context.Context, run Page) (*FailureGroups, error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	failed, attempts := 0, int64(0)
	err = a.run.QueryAll(ctx, func(c *state.Cores) {
		view, _ := c.Dispatch.Run(c.Run)
		failed, attempts = view.Totals.ByState[taskqueue.Failed], c.Tally.Sums.Attempts()
	})
	if err != nil || failed == 0 {
		return new(FailureGroups), rpcError(err)
	}
	s.failures.mu.Lock()
	defer s.failures.mu.Unlock()
	if seen := s.failures.runs[run]; seen != nil &&
		(seen.failed == failed && seen.attempts == attempts || time.Now().Before(seen.until)) {
		return seen.groups, nil
	}
	began := time.Now()
	groups, err := a.groupFailures(ctx)
	if err != nil {
		return nil, rpcError(err)
	}
	if s.failures.runs == nil || len(s.failures.runs) > 64 {
		s.failures.runs = map[Page]*failuresOf{}
	}
	s.failures.runs[run] = &failuresOf{failed, attempts, time.Now().Add(failuresRest * time.Since(began)), groups}
	return groups, nil
}

// eachFailed visits the jobs that failed, in the order of their numbers and beside the loop.
func (a *view) eachFailed(ctx context.Context, visit func(*taskqueue.JobView)) error {
	left := 0
	err := a.run.QueryAll(ctx, func(c *state.Cores) {
		view, _ := c.Dispatch.Run(c.Run)
		left = view.Totals.ByState[taskqueue.Failed]
	})
	for after, more := uint32(0), err == nil; more && left > 0; {
		var jobs []taskqueue.JobView
		more = false
		err = a.run.QueryAll(ctx, func(c *state.Cores) {
			looked := 0
			for job := range c.Dispatch.Jobs(c.Run, after) {
				if looked++; looked > searchPiece {
					more = true
					return
				}
				if after = job.ID.Number(); job.State == taskqueue.Failed {
					jobs = append(jobs, job)
				}
			}
		})
		if err != nil {
			return err
		}
		left -= len(jobs)
		for i := range jobs {
			visit(&jobs[i])
		}
	}
	return cmp.Or(err, ctx.Err())
}

func (a *view) groupFailures(ctx context.Context) (*FailureGroups, error) {
	g := grouping{byMessage: map[string]*FailureGroup{}}
	if err := a.eachFailed(ctx, g.add); err != nil {
		return nil, err
	}
	return g.groups(), nil
}

type grouping struct {
	byMessage map[string]*FailureGroup
	rest      int64 // of messages that are not compared any more
}

func (g *grouping) add(job *taskqueue.JobView) {
	message := alike(job.Name, job.Reason)
	group := g.byMessage[message]
	if group == nil && len(g.byMessage) == messagesCompared {
		g.rest++
		return
	}
	if group == nil {
		group = &FailureGroup{Message: message, Job: job.ID.Number(), Name: job.Name, Reason: beginning(job.Reason)}
		g.byMessage[message] = group
	}
	group.Jobs++
	switch {
	case slices.Contains(group.Steps, job.Step):
	case len(group.Steps) < stepsTold:
		group.Steps = append(group.Steps, job.Step)
	default:
		group.Others = true
	}
}

func (g *grouping) groups() *FailureGroups {
	sorted := slices.SortedFunc(maps.Values(g.byMessage), func(a, b *FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Message, b.Message))
	})
	shown := min(len(sorted), failureGroups)
	all := &FailureGroups{Groups: slices.Clone(sorted[:shown]), Rest: g.rest, Messages: len(sorted) - shown}
	for _, group := range sorted[shown:] {
		all.Rest += group.Jobs
	}
	return all
}

// RetryFailures lets the jobs of one group of failures run again.
func (s *Service) RetryFailures(ctx context.Context, run Page, message string) (*wire.ChangedJobs, error) {
	a, err := s.toChange(ctx, run)
	if err != nil {
		return nil, err
	}
	var jobs []taskqueue.JobID
	err = a.eachFailed(ctx, func(job *taskqueue.JobView) {
		if alike(job.Name, job.Reason) == message {
			jobs = append(jobs, job.ID)
		}
	})
	if err != nil {
		return nil, rpcError(err)
	}
	if len(jobs) == 0 {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no job is left that failed so: look at the failures "+
			"that there are now"))
	}
	return a.changeJobs(ctx, func(c *state.Cores) ([]taskqueue.Input, []taskqueue.JobID, error) {
		jobs := slices.DeleteFunc(slices.Clone(jobs), func(id taskqueue.JobID) bool {
			job, _ := c.Dispatch.Job(id)
			return job.State != taskqueue.Failed // somebody else was faster
		})
		return []taskqueue.Input{taskqueue.RetryJobs{Jobs: jobs}}, jobs, nil
	})
}

// messageLimit is the most of a reason that is compared.
const messageLimit = 300

var (
	differing = regexp.MustCompile(`[0-9a-f]{8,}|[0-9]+([.:][0-9]+)*`)
	replaced  = regexp.MustCompile(`…/[^\s:'",]*|#|JOB`)
	paths     = regexp.MustCompile(`(/[^\s:'",]+)+`)
)

// alike is a reason without what differs from job to job: its name, paths and numbers.
func alike(name, reason string) string {
	if len(reason) > messageLimit {
		reason = strings.ToValidUTF8(reason[:messageLimit], "")
	}
	reason = strings.ReplaceAll(reason, name, "JOB")
	reason = paths.ReplaceAllStringFunc(reason, func(path string) string {
		return "…" + path[strings.LastIndex(path, "/"):]
	})
	return differing.ReplaceAllString(reason, "#")
}

func beginning(reason string) string {
	if len(reason) <= messageLimit {
		return reason
	}
	return strings.ToValidUTF8(reason[:messageLimit], "") + "…"
}
