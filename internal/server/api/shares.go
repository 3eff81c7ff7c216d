package api

import (
	"context"
	"fmt"
	"math"

	"connectrpc.com/connect"

	"fairway/internal/dispatch"
	"fairway/internal/rights"
	"fairway/internal/server/convert"
	"fairway/internal/server/listen"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// ListShares tells how people share the server.
func (s *Service) ListShares(ctx context.Context, _ *wire.ListSharesRequest) (*wire.ListSharesResponse, error) {
	if err := listen.Permit(ctx, rights.Watch); err != nil {
		return nil, err
	}
	server, err := s.lasting()
	if err != nil {
		return nil, err
	}
	response := new(wire.ListSharesResponse)
	if response.File, response.Problem, err = server.Sharing(ctx); err != nil {
		return nil, rpcError(err)
	}
	err = server.QueryFleet(ctx, func(core *dispatch.Core) {
		response.Shares = convert.Each(core.Shares(), shareToWire)
		response.HalfLife = core.HalfLife().Seconds()
		response.Limits = convert.Each(core.Limits(), func(l taskqueue.LimitView) *wire.LimitUse {
			return &wire.LimitUse{Name: l.Name, Most: l.Most, Used: l.Used}
		})
	})
	return response, rpcError(err)
}

func shareToWire(v taskqueue.ShareView) *wire.ShareSummary {
	summary := &wire.ShareSummary{
		Name: v.Name, User: v.User, Depth: int32(v.Depth), Weight: v.Weight, Share: v.Share, Usage: v.Usage.Seconds(),
		Used: v.Used, Rank: int32(v.Rank), Ready: int64(v.Ready), Running: int64(v.Running),
		Cores: float64(v.CPUs) / 1000, Stored: v.Stored, Runs: int64(v.Runs), MostRunning: int64(v.Limits.Running),
		MostCores: float64(v.Limits.MilliCPUs) / 1000, MostQueued: int64(v.Limits.Queued), MostStored: v.Limits.Stored,
	}
	if !math.IsInf(v.LevelFS, 1) {
		summary.LevelFs = &v.LevelFS
	}
	return summary
}

// RefuseQueued refuses so many further jobs of a user who may not have them.
func RefuseQueued(core *dispatch.Core, a taskqueue.Account, jobs int) error {
	of, queued, most := core.Queued(a)
	if most == 0 || queued+jobs <= most {
		return nil
	}
	return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("%s may have %d jobs that wait, and has %d: submit "+
		"again when some have run", of, most, queued))
}
