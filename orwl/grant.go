package orwl

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

// failure says why h has lost its request, if it has.
func (l *Location) failure(h *Handle) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.state == failed {
		return h.err
	}
	return nil
}

// tellLocked sends a grant, under the lock of the session.
func (s *session) tellLocked(p *proxy) {
	l, sub := p.sub.location, p.sub
	data := l.memory.bytes
	l.lock()
	if l.journal == nil && !sub.mapped {
		l.journal = newJournal(data, l.version.Load())
	}
	version, j := l.version.Load(), l.journal
	l.mu.Unlock()
	f := frame{kind: frameGranted, id: p.id, mirror: sub.id, generation: p.handle.generation, version: version, size: int64(len(data)), text: cutText(p.served.by)}
	switch {
	case sub.mapped:
	case !sub.has && len(data) > 0:
		f.extents = []extent{{0, len(data)}}
	case sub.version != version:
		f.extents = j.since(len(data), sub.version)
	}
	sub.has, sub.version, p.told = true, version, true
	if sub.mapped && sub.file != l.memory.file {
		sub.file, f.ok = l.memory.file, true
		s.link.sendMemory(f, l.memory.file, sub.inPlace)
		return
	}
	if s.link.out.copies(f.dataLength()) {
		s.link.sendData(f, data, nil)
		return
	}
	p.sending = true
	s.link.sendInPlace(f, data, func() { s.tasks.Go(func() { s.sent(p) }) })
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
