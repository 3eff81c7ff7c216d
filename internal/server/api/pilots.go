package api

import (
	"context"
	"slices"
	"strings"

	"fairway/internal/dispatch"
	"fairway/internal/rights"
	"fairway/internal/server/convert"
	"fairway/internal/server/listen"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// ListPilots lists the pilots by site and name, and then those that are asked for and are not
// there yet.
func (s *Service) ListPilots(ctx context.Context, r *wire.ListPilotsRequest) (*wire.ListPilotsResponse, error) {
	if err := listen.Permit(ctx, rights.Watch); err != nil {
		return nil, err
	}
	fleet := Fleet(s.server)
	if s.server == nil {
		a, err := s.find(ctx, r.GetRun())
		if err != nil {
			return nil, err
		}
		if a.control == nil {
			return nil, errNotRunning
		}
		fleet = fleetOf{a}
	}
	response := new(wire.ListPilotsResponse)
	err := fleet.QueryFleet(ctx, func(core *dispatch.Core) {
		response.Pilots, response.Now = pilotsOf(core), convert.InstantToWire(state.Now())
	})
	response.Waiting, response.Version = fleet.PilotsWaiting(), s.version
	return response, rpcError(err)
}

// Fleet are the pilots of a server.
type Fleet interface {
	// QueryFleet calls ask with the core, which must not be kept or changed.
	QueryFleet(ctx context.Context, ask func(*dispatch.Core)) error
	// PilotsWaiting says why pilots are not there yet, one sentence each for a person.
	PilotsWaiting() []string
}

// fleetOf are the pilots of the server of a run.
type fleetOf struct{ *view }

// QueryFleet is part of Fleet.
func (f fleetOf) QueryFleet(ctx context.Context, ask func(*dispatch.Core)) error {
	return f.run.Query(ctx, 0, func(c *state.Cores) { ask(c.Dispatch) })
}

func (f fleetOf) PilotsWaiting() []string { return f.control.PilotsWaiting() }

func pilotsOf(core *dispatch.Core) (all []*wire.PilotSummary) {
	there := map[string]bool{}
	for _, p := range core.Pilots() {
		there[p.Info.Launch] = true
		all = append(all, &wire.PilotSummary{
			Name: string(p.Pilot), Site: p.Info.Site, Launch: p.Info.Launch, Host: p.Info.Host, State: pilotState(&p),
			Running: int64(p.Running), Queued: int64(p.Assigned), Has: convert.ResourcesToWire(p.Info.Has),
			Expires: convert.InstantToWire(p.Info.Expires), CacheFiles: int64(p.Cached),
			CacheLimit: p.Info.CacheSize,
		})
	}
	slices.SortStableFunc(all, func(a, b *wire.PilotSummary) int { return strings.Compare(a.GetSite(), b.GetSite()) })
	for _, l := range core.Launches() {
		if !there[l.Launch] && !l.Came {
			all = append(all, &wire.PilotSummary{Site: l.Site, Launch: l.Launch, State: "inactive"})
		}
	}
	return all
}

// pilotState is the state of a pilot in the words of section IV: inactive ones are not there yet.
func pilotState(p *taskqueue.PilotView) string {
	switch {
	case !p.Silent.IsZero():
		return "silent"
	case p.Running > 0:
		return "busy"
	case p.Doubted != "":
		return "doubted"
	}
	return "idle"
}
