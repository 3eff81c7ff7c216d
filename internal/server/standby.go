package server

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"fairway/internal/access"
	"fairway/internal/server/active"
)

// members are what pilots are told of the servers of the state (api.Members).
type members struct{ server *Server }

// Term is part of api.Members.
func (m members) Term() uint64 { return m.server.termNumber }

// Addresses is part of api.Members.
func (m members) Addresses() (all []string, number uint64) {
	known := m.server.far.known.Load()
	if known == nil {
		return nil, 0
	}
	return known.all, known.number
}

// Followed is part of api.Members.
func (m members) Followed() {
	if seat := m.server.role.Seat; seat != nil {
		if err := seat.Assert(context.Background()); active.IsReplaced(err) {
			m.server.leave(err)
		}
	}
}

// knownAddresses are those of all servers of a state.
type knownAddresses struct {
	all    []string
	number uint64
}

// withOthers are the addresses of this server, and behind them those of the others.
func (s *Server) withOthers(own []string) []string {
	all := slices.Clone(own)
	if b := s.config.Standby; b != nil {
		for _, other := range b.Others().Others() {
			for _, address := range other.Addresses {
				if !slices.Contains(all, address) && len(all) < access.MaxAddresses {
					all = append(all, address)
				}
			}
		}
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(strings.Join(all, "\n"))) // never fails
		s.far.known.Store(&knownAddresses{all, sum.Sum64()})
	}
	return all
}

// tellAddresses writes the files that say how the server is reached, where servers have come or gone.
func (s *Server) tellAddresses() {
	before := s.far.known.Load()
	all := s.withOthers(s.far.own)
	if now := s.far.known.Load(); before != nil && before.number == now.number {
		return
	}
	s.far.connections.Move(all)
	connection, err := access.ReadConnection(s.serviceFile())
	if err == nil {
		connection.Addresses, connection.Standby = all, true
		err = errors.Join(s.writePublic(connection), connection.Write(s.serviceFile()))
	}
	if err != nil {
		s.log.Warn("people do not hear of the addresses of other servers", "error", err)
	}
}

// keepSeat ends the server when it is not the active one any more.
func (s *Server) keepSeat(ctx context.Context) {
	s.role.Keep(ctx, func() {
		if s.jobs != nil {
			if err := s.jobs.Step(time.Since(s.began)); err != nil {
				s.leave(err)
			}
		}
		if s.config.Standby != nil {
			s.tellAddresses()
			if err := s.pilotsSocket.Show(); err != nil {
				s.log.Warn("pilots of this machine may not find the server", "error", err)
			}
		}
	})
}

// calls has whoever asks a server that was replaced ask the next one.
func (s *Server) calls() active.Calls { return active.Calls{Role: s.role, Leaving: s.leaving} }

func (s *Server) answers(ctx context.Context) error {
	if s.role.Outlived() {
		return active.ErrReplaced()
	}
	return s.service().Answers(ctx)
}
