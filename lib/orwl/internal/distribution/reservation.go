package distribution

import (
	"context"
	"fmt"

	"fairway/lib/orwl/internal/transport"
)

// foreignReservation is the part of another process's insertion that concerns
// the locations of this one. It is known from the moment when it is asked for,
// because the other process may give it up while it still waits behind another
// insertion.
type foreignReservation struct {
	ctx     context.Context
	cancel  context.CancelFunc // ends the waiting
	proxies []*proxy
	wanted  []Wanted

	// Under the lock of the session.
	made      func(keep bool) // settles it; nil until the requests are inserted
	abandoned bool            // given up before that
}

// gathered is a reservation of which only some frames have come.
type gathered struct {
	id  uint64
	r   *foreignReservation
	err error // why it is refused when the last frame has come
}

// reserve takes a part of a reservation, and begins to insert it when that is the last one.
// That may have to wait, so it does not end on the goroutine that reads.
func (s *Session) reserve(f *transport.Frame) error {
	g := s.gathering
	if g == nil {
		g = &gathered{id: f.ID, r: new(foreignReservation)}
	}
	if g.id != f.ID || len(f.Requests) == 0 {
		return fmt.Errorf("%w: reservation %d in the middle of %d", transport.ErrMalformed, f.ID, g.id)
	}
	if g.err == nil {
		g.err = s.gather(g.r, f.Requests)
	}
	s.gathering = g
	if !f.OK {
		return nil
	}
	s.gathering = nil
	if g.err == nil {
		g.err = s.register(g.id, g.r)
	}
	if g.err != nil {
		s.forgetAll(g.r)
		s.refuseReservation(g.id, g.err)
		return nil
	}
	s.tasks.Go(func() { s.insert(g.id, g.r) })
	return nil
}

func (s *Session) refuseReservation(id uint64, err error) {
	s.link.Send(transport.Frame{Kind: transport.Answered, ID: id, Code: CodeOf(err), Text: err.Error()})
}

// gather registers requests of a reservation.
func (s *Session) gather(r *foreignReservation, requests []transport.Posting) error {
	for _, q := range requests {
		p, err := s.newProxy(q)
		if err != nil {
			return err
		}
		p.unsettled = true
		r.proxies = append(r.proxies, p)
		r.wanted = append(r.wanted, Wanted{Request: p.Request, Mode: q.Mode, Rank: int(q.Rank)})
	}
	return nil
}

func (s *Session) register(id uint64, r *foreignReservation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reservations[id] != nil {
		return fmt.Errorf("reservation %d: %w", id, ErrBusy)
	}
	r.ctx, r.cancel = context.WithCancel(s.ctx)
	s.reservations[id] = r
	return nil
}

func (s *Session) forgetAll(r *foreignReservation) {
	for _, p := range r.proxies {
		s.forget(p)
	}
}

// insert inserts the requests behind a latch, and takes them back when the other
// process has given up meanwhile.
func (s *Session) insert(id uint64, r *foreignReservation) {
	defer r.cancel()
	made, err := s.by.Reserve(r.ctx, r.wanted)
	s.mu.Lock()
	r.made = made
	abandoned := r.abandoned
	if err != nil && s.reservations[id] == r {
		delete(s.reservations, id)
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		s.forgetAll(r)
		s.refuseReservation(id, err)
	case abandoned:
		s.takeBack(r)
	default:
		s.link.Send(transport.Frame{Kind: transport.Answered, ID: id, OK: true})
	}
}

// settle ends a reservation. One that is not made yet is only given up.
func (s *Session) settle(f *transport.Frame) {
	s.mu.Lock()
	r := s.reservations[f.ID]
	delete(s.reservations, f.ID)
	early := r != nil && r.made == nil
	if early {
		r.abandoned = true
	}
	if r != nil {
		for _, p := range r.proxies {
			p.unsettled = false
		}
	}
	s.mu.Unlock()
	switch {
	case r == nil:
	case early:
		r.cancel()
	case f.OK:
		r.made(true)
	default:
		s.takeBack(r)
	}
}

// takeBack withdraws the requests of a reservation that was made, and lets
// those in that stand behind it.
func (s *Session) takeBack(r *foreignReservation) {
	for _, p := range r.proxies {
		s.withdraw(p)
	}
	r.made(true)
}

// Unsettled is how many reservations of the other process are not settled.
func (s *Session) Unsettled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reservations)
}
