package server

import (
	"context"
	"errors"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/wire"
)

// live is a run that is under way, as the API shows it (api.Run).
type live struct{ *Server }

func (s live) ID() dispatch.RunID { return s.opened.run.ID }

func (s live) Steps() []string { return s.opened.run.Steps }

func (s live) List(context.Context, *wire.ListJobsRequest) (*wire.ListJobsResponse, error) {
	return nil, nil // its cores are there
}

func (s live) Query(ctx context.Context, _ dispatch.JobID, ask func(*state.Cores)) error {
	return s.QueryAll(ctx, ask)
}

func (s live) QueryAll(ctx context.Context, ask func(*state.Cores)) error {
	err := s.inbox.Query(ctx, ask)
	if errors.Is(err, loop.ErrEnded) {
		ask(&s.loop.Cores) // nobody changes them any more
		return nil
	}
	return err
}

func (s live) QueryTally(ctx context.Context, ask func(*state.Tally)) error {
	return s.QueryAll(ctx, func(c *state.Cores) { ask(c.Tally) })
}

func (s live) Provenance(ctx context.Context, job, key string) (*wire.Provenance, error) {
	return state.LoadProvenance(ctx, s.opened.store, job, key)
}

// Report counts what this server has seen. Where a run goes on that another server began, Resting
// counts both when it has ended.
func (s live) Report(r *wire.ProgressReport) {
	r.Summary.Results = s.files.Place()
	subtract(r.Summary, s.earlier)
	if end := s.concluded.Load(); end != nil {
		r.Ended, r.Succeeded, r.Problems, r.Notes = true, end.Succeeded, end.Problems, end.Notes
		r.Summary.WallSeconds = end.seconds
		return
	}
	r.Summary.WallSeconds = time.Since(s.began).Seconds()
	r.Problems, r.Notes = s.loop.Ending.Problems(), s.loop.Ending.Notes()
	r.ToPublish = int64(s.loop.Ending.ToPublish())
}

func (s live) Changes() <-chan struct{} { return s.loop.Changes() }

func (s live) Change(ctx context.Context, r *loop.Request) error { return s.inbox.Do(ctx, r) }

// subtract takes from a summary what attempts were and did that had ended when another was made.
func subtract(s, earlier *wire.Summary) {
	s.Attempts -= earlier.GetAttempts()
	s.CacheHits -= earlier.GetCacheHits()
	s.CacheMisses -= earlier.GetCacheMisses()
	s.RemoteHits -= earlier.GetRemoteHits()
	s.PrefetchHits -= earlier.GetPrefetchHits()
	s.BytesStaged -= earlier.GetBytesStaged()
	s.BytesCached -= earlier.GetBytesCached()
	s.BytesWritten -= earlier.GetBytesWritten()
	s.StagingSeconds -= earlier.GetStagingSeconds()
	s.ComputingSeconds -= earlier.GetComputingSeconds()
	s.StageInSeconds -= earlier.GetStageInSeconds()
	s.HiddenSeconds -= earlier.GetHiddenSeconds()
}
