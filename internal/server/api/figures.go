package api

import (
	"context"
	"errors"
	"maps"

	"connectrpc.com/connect"

	"fairway/internal/dispatch"
	"fairway/internal/rights"
	"fairway/internal/server/listen"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// Figures are what a server measures, for programs that watch it.
type Figures struct {
	Jobs   taskqueue.Totals // of all runs in memory
	Runs   int              // in memory
	Sites  []taskqueue.SiteView
	Pilots map[string]map[string]int // by site and state
	Used   state.Used
	Calls  map[string]map[string]int64 // of batch systems, by site and kind
	Inbox  int                         // requests that wait for the loop
	Queued int                         // attempts that wait at pilots
}

// Figured is a server that measures.
type Figured interface {
	// QueryFigures fills in all that is not seen in the core.
	QueryFigures(ctx context.Context, ask func(*dispatch.Core, *state.Nodes)) (*Figures, error)
}

// Measure says whose figures the service shows.
func (s *Service) Measure(server Figured) { s.figures = server }

// Figures tells what the server measures.
func (s *Service) Figures(ctx context.Context) (*Figures, error) {
	if err := listen.Permit(ctx, rights.Watch); err != nil {
		return nil, err
	}
	if s.figures == nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("this server has no figures"))
	}
	var seen Figures
	f, err := s.figures.QueryFigures(ctx, func(core *dispatch.Core, nodes *state.Nodes) {
		seen = Figures{Jobs: core.Totals(), Sites: core.Sites(), Pilots: map[string]map[string]int{}, Used: nodes.Used}
		seen.Used.Events, seen.Used.Outcomes = maps.Clone(nodes.Used.Events), maps.Clone(nodes.Used.Outcomes)
		for _, p := range core.Pilots() {
			if seen.Pilots[p.Info.Site] == nil {
				seen.Pilots[p.Info.Site] = map[string]int{}
			}
			seen.Pilots[p.Info.Site][pilotState(&p)]++
			seen.Queued += p.Assigned
		}
	})
	if err != nil {
		return nil, rpcError(err)
	}
	seen.Runs, seen.Calls, seen.Inbox = f.Runs, f.Calls, f.Inbox
	return &seen, nil
}
