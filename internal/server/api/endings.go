package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/access"
	"fairway/internal/rights"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// EndingsPause is the least time between two reports of one stream of endings.
const EndingsPause = 5 * time.Millisecond

// maxEndings bounds the jobs of one report, of which others follow in the next ones, and those that
// one call names.
const maxEndings = 1000

// Endings streams the jobs that end.
func (s *Service) Endings(
	ctx context.Context, r *wire.EndingsRequest, stream *connect.ServerStream[wire.EndedJobs],
) error {
	a, err := s.of(ctx, r)
	if err != nil {
		return err
	}
	if len(r.GetJobs()) > 0 {
		return a.tellEnded(ctx, r.GetJobs(), stream.Send)
	}
	if r.GetHold() {
		release, err := s.hold(ctx, r)
		if err != nil {
			return rpcError(err)
		}
		defer release()
	}
	return a.tellEndings(ctx, stream.Send)
}

// hold holds the run for who adds jobs to it.
func (s *Service) hold(ctx context.Context, r *wire.EndingsRequest) (release func(), err error) {
	a, err := s.allowed(ctx, r.GetRun(), rights.Submit)
	if err != nil {
		return nil, err
	}
	if a.control == nil {
		return nil, s.errNotRunning(a)
	}
	return a.control.Hold()
}

func (a *view) tellEnded(ctx context.Context, names []string, send func(*wire.EndedJobs) error) error {
	if len(names) > maxEndings {
		return connect.NewError(connect.CodeInvalidArgument,
			fmt.Errorf("jobs: %d are named: ask for at most %d at a time", len(names), maxEndings))
	}
	report := new(wire.EndedJobs)
	err := a.run.QueryAll(ctx, func(c *state.Cores) {
		var jobs []taskqueue.JobID
		for _, name := range names {
			if job, err := findJob(c, name); err == nil {
				jobs = append(jobs, job)
			}
		}
		report.Jobs = a.endedJobs(c, jobs)
	})
	if err != nil {
		return rpcError(err)
	}
	return send(report)
}

// tellEndings sends jobs that end, and something at least every access.KeepAlive.
func (a *view) tellEndings(ctx context.Context, send func(*wire.EndedJobs) error) error {
	var said time.Time
	at, known := 0, (*state.Tally)(nil)
	for {
		changed, report, first := a.run.Changes(), new(wire.EndedJobs), known == nil
		anew, more := false, false
		err := a.run.QueryAll(ctx, func(c *state.Cores) {
			if first {
				at, known = len(c.Tally.Ended), c.Tally
			}
			if anew = c.Tally != known; anew {
				return
			}
			ended := c.Tally.Ended[at:]
			more = len(ended) > maxEndings
			ended = ended[:min(len(ended), maxEndings)]
			at += len(ended)
			report.Jobs = a.endedJobs(c, ended)
		})
		switch {
		case err != nil:
			return rpcError(err)
		case anew:
			return errLoadedAnew
		case len(report.Jobs) > 0 || time.Since(said) >= access.KeepAlive:
			if err := send(report); err != nil {
				return err
			}
			said = time.Now()
		}
		switch over, err := a.over(ctx, len(report.Jobs) > 0); {
		case err != nil:
			return rpcError(err)
		case more || over && len(report.Jobs) > 0: // what ended last is to be told
			continue
		case over || changed == nil:
			return nil
		}
		if _, err := a.closed(ctx, changed, max(0, access.KeepAlive-time.Since(said))); err != nil {
			return rpcError(err)
		}
	}
}

var errLoadedAnew = connect.NewError(connect.CodeUnavailable,
	errors.New("the server has loaded its records anew: ask again, and look at the jobs"))

func (a *view) over(ctx context.Context, told bool) (bool, error) {
	if told {
		return a.closed(ctx, a.run.Ended(), EndingsPause)
	}
	select {
	case <-a.run.Ended():
		return true, nil
	default:
		return false, nil
	}
}

// endedJobs describes jobs as they stand now, those that have not been let run again meanwhile.
func (a *view) endedJobs(c *state.Cores, ids []taskqueue.JobID) (ended []*wire.EndedJob) {
	told := make(map[taskqueue.JobID]bool, len(ids))
	for _, id := range ids {
		job, ok := c.Dispatch.Detail(id)
		if !ok || told[id] || !isOver(job.State) {
			continue
		}
		told[id] = true
		made := &wire.EndedJob{Summary: summaryOf(c, &job.JobView)}
		if job.State == taskqueue.Done {
			for _, f := range job.Writes {
				if !f.Pattern {
					made.Writes = append(made.Writes, a.madeFile(&f))
				}
			}
		}
		ended = append(ended, made)
	}
	return ended
}

func (a *view) madeFile(f *taskqueue.FileView) *wire.MadeFile {
	made := &wire.MadeFile{Lfn: f.File.LFN, Version: uint32(f.File.Version), Size: f.Size}
	if f.PFN != "" {
		made.Path = a.roots.Shown(f.PFN)
	}
	return made
}

func isOver(s taskqueue.State) bool {
	return slices.Contains([]taskqueue.State{taskqueue.Done, taskqueue.Failed, taskqueue.Blocked, taskqueue.Cancelled}, s)
}
