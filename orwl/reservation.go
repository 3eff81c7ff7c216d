package orwl

import (
	"context"
	"fmt"
)

// foreignReservation is the part of another process's insertion that concerns
// the locations of this one. It is known from the moment when it is asked for,
// because the other process may give it up while it still waits behind another
// insertion.
type foreignReservation struct {
	ctx      context.Context
	cancel   context.CancelFunc // ends the waiting
	proxies  []*proxy
	postings []Posting

	// Under the lock of the session.
	made      reservation // nil until the requests are inserted
	abandoned bool        // given up before that
}

// reserve begins to insert a part of an insertion that spans processes. It may
// have to wait, so it does not end on the goroutine that reads.
func (s *session) reserve(f *frame) error {
	id := f.id
	r, err := s.newReservation(id, f.requests)
	if err != nil {
		s.refuseReservation(id, err)
		return nil
	}
	s.tasks.Go(func() { s.insert(id, r) })
	return nil
}

func (s *session) refuseReservation(id uint64, err error) {
	s.link.send(frame{kind: frameReserved, id: id, code: codeOf(err), text: err.Error()})
}

// newReservation registers the reservation and its requests.
func (s *session) newReservation(id uint64, requests []wireRequest) (*foreignReservation, error) {
	s.mu.Lock()
	known := s.reservations[id] != nil
	s.mu.Unlock()
	if known || len(requests) == 0 {
		return nil, fmt.Errorf("reservation %d of %d requests: %w", id, len(requests), ErrBusy)
	}
	r := new(foreignReservation)
	for _, q := range requests {
		p, err := s.newProxy(q)
		if err != nil {
			s.forgetAll(r)
			return nil, err
		}
		r.proxies = append(r.proxies, p)
		r.postings = append(r.postings, Posting{handle: &p.handle, resource: p.sub.location, mode: q.mode, Rank: int(q.rank)})
	}
	r.ctx, r.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reservations[id] = r
	return r, nil
}

func (s *session) forgetAll(r *foreignReservation) {
	for _, p := range r.proxies {
		s.forget(p)
	}
}

// insert inserts the requests behind a latch, and takes them back when the other
// process has given up meanwhile.
func (s *session) insert(id uint64, r *foreignReservation) {
	defer r.cancel()
	made, err := localOwner{}.reserve(r.ctx, r.postings)
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
		s.link.send(frame{kind: frameReserved, id: id, ok: true})
	}
}

// settle ends a reservation. One that is not made yet is only given up.
func (s *session) settle(f *frame) {
	s.mu.Lock()
	r := s.reservations[f.id]
	delete(s.reservations, f.id)
	early := r != nil && r.made == nil
	if early {
		r.abandoned = true
	}
	s.mu.Unlock()
	switch {
	case r == nil:
	case early:
		r.cancel()
	case f.ok:
		r.made.settle(true)
	default:
		s.takeBack(r)
	}
}

// takeBack withdraws the requests of a reservation that was made, and lets
// those in that stand behind it.
func (s *session) takeBack(r *foreignReservation) {
	for _, p := range r.proxies {
		s.withdraw(p)
	}
	r.made.settle(true)
}
