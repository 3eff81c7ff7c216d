package server

import (
	"context"

	"fairway/internal/dispatch"
	"fairway/internal/server/api"
	"fairway/internal/server/state"
)

// QueryFigures is part of api.Figured.
func (s *Server) QueryFigures(
	ctx context.Context, ask func(*dispatch.Core, *state.Nodes),
) (*api.Figures, error) {
	f := &api.Figures{Runs: len(s.runs.all()), Inbox: s.inbox.Waiting(), Calls: s.pilots.Calls()}
	return f, s.inbox.Query(ctx, func(c *state.Cores) { ask(c.Dispatch, c.Tally.Nodes) })
}
