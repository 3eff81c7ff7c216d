package orwl

import "fairway/orwl/internal/transport"

// granted is called when the fate of a proxy is decided: it tells the other
// process, and sends what it lacks of the data.
func (s *session) granted(p *proxy) {
	l := p.sub.location
	if err := l.failure(&p.handle); err != nil {
		s.forget(p)
		s.refuse(p.id, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.cancelled && !s.ended {
		s.tellLocked(p)
	}
}

// tellLocked sends a grant, under the lock of the session.
func (s *session) tellLocked(p *proxy) {
	sub := p.sub
	data, version, file, lacks := sub.location.lackedBy(sub)
	f := transport.Frame{
		Kind: transport.Granted, ID: p.id, Mirror: sub.id, Generation: p.handle.generation, Version: version,
		Size: int64(len(data)), Extents: lacks, Text: p.served.by,
	}
	sub.has, sub.version, p.told = true, version, true
	if sub.mapped && sub.file != file {
		fd, err := file.Export(sub.inPlace)
		if err != nil {
			s.link.Cut()
			return
		}
		sub.file, f.OK = file, true
		s.link.SendDescriptor(f, fd)
		return
	}
	p.sending = !s.link.SendData(f, data, func() { s.tasks.Go(func() { s.sent(p) }) })
}

// sent ends the time in which the data must stay unchanged.
func (s *session) sent(p *proxy) {
	s.mu.Lock()
	p.sending = false
	s.left.Broadcast()
	cancelled := p.cancelled
	s.mu.Unlock()
	if cancelled {
		p.sub.location.release(&p.handle)
	}
}

// awaitSent waits until the data of a grant has left. The other process has all of it when
// it releases; one that releases earlier must not have the memory go while it is sent, and
// loses its connection with the lease if it does not read on.
func (s *session) awaitSent(p *proxy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p.sending {
		s.left.Wait()
	}
}

// withdraw takes out a request, or releases it unless its data is being sent.
func (s *session) withdraw(p *proxy) {
	s.forget(p)
	if p.sub.location.withdraw(&p.handle) {
		return
	}
	s.mu.Lock()
	p.cancelled = true
	sending := p.sending
	s.mu.Unlock()
	if !sending {
		p.sub.location.release(&p.handle)
	}
}
