package distribution

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"fairway/lib/fifo"
	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
)

// Session is what a process at the other end of a link has in the locations of
// this one. It ends with the link: the process loses all of it. Who reads the connection calls
// Asked, one frame after the other; the owner calls granted, as decided, from whatever goroutine decides.
//
// The way of a release, from one other process to the task of the next, which may be in
// the same process. It is the same over a Unix socket and between hosts. The release of a
// task of the owner's process begins at 3.
//
//  1. Mirror.release, or Mirror.cycle where the next request goes with it: Mirror.pass
//     (mirror.go of orwl) makes the frame Release with what was changed, and sends it.
//  2. Session.Asked calls Session.release, which checks that the grant is still the one
//     that was told (holder), and writes the changes.
//  3. Location.release or Location.cycle (queue.go). Where other requests stand in the
//     queue, grantLocked grants the next of them, and recordGrant numbers each grant.
//  4. wakeList.up, without the lock of the location: a task of this process gets its
//     token; for a proxy it calls decided, which is Session.granted.
//  5. Session.granted sends the frame Granted, with what its process lacks of the data
//     (sendGrantLocked).
//  6. Peer.answered calls Peer.granted (peer.go): it brings the replica up to date, and
//     wakeList.up gives the waiting task its token.
type Session struct {
	link   *transport.Link
	by     Owner
	limits Limits
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	// Each request of the other process has one proxy, by the id that it gave, from its coming to
	// its refusal, release or withdrawal; a proxy that stands in a queue is in proxies. What was
	// subscribed stays until the end. mirrorOf names one subscription for each location.
	mu           sync.Mutex
	dataSent     sync.Cond // the data of a grant has left
	ended        bool      // nothing is sent any more
	subscribed   map[uint64]*subscription
	mirrorOf     map[Location]uint64
	proxies      map[uint64]*proxy
	reservations map[uint64]*foreignReservation // not settled

	// These belong to who reads the connection.
	gathering *gathered // nil between reservations
	taken     []byte    // data on its way into a location; kept for the next
}

// subscription is a location that the other process has opened.
type subscription struct {
	id       uint64
	location Location
	mapped   bool // the other process maps the memory
	inPlace  bool // and writes to it
	has      bool // the other process has had a version
	version  uint64
	file     *memory.File // the memory that the other process maps; nil before its first grant
}

// proxy stands in the queue for a request of the other process. It is granted
// on behalf of it as long as the link lasts.
type proxy struct {
	Request
	task      string
	id        uint64
	sub       *subscription
	grantSent bool // the grant was sent, so the other process may have written
	sending   bool // the data of the location is being read for the grant
	cancelled bool
	unsettled bool // part of a reservation that is not settled: that decides about it
}

// NewSession begins what the process at the other end of l has here. Asked is what takes its frames, and
// End ends it.
func NewSession(l *transport.Link, by Owner, limits Limits) *Session {
	ctx, cancel := context.WithCancel(context.Background())
	n := &Session{
		link: l, by: by, limits: limits, ctx: ctx, cancel: cancel,
		subscribed: make(map[uint64]*subscription), mirrorOf: make(map[Location]uint64), proxies: make(map[uint64]*proxy),
		reservations: make(map[uint64]*foreignReservation),
	}
	n.dataSent.L = &n.mu
	return n
}

// Asked takes a frame of the other process, on the goroutine that reads the connection. An error ends it.
func (s *Session) Asked(f *transport.Frame) error {
	switch f.Kind {
	case transport.Open:
		s.open(f)
	case transport.Request:
		s.request(f)
	case transport.Cancel:
		if p := s.find(f.ID); p != nil && !s.isUnsettled(p) {
			s.withdraw(p)
		}
	case transport.Release:
		return s.release(f)
	case transport.Reserve:
		return s.reserve(f)
	case transport.Settle:
		s.settle(f)
	case transport.Sync:
		s.link.Send(transport.Frame{Kind: transport.Answered, ID: f.ID, OK: true})
	}
	return nil
}

// open answers without a look at the memory, which a task may be writing: that goes, or a
// descriptor of it, with the first grant.
func (s *Session) open(f *transport.Frame) {
	l, err := s.by.Find(f.Text)
	if err != nil {
		s.link.Send(transport.Frame{Kind: transport.Opened, ID: f.ID, Code: CodeOf(err), Text: err.Error()})
		return
	}
	sub := &subscription{id: f.ID, location: l}
	shared, inPlace := l.Mapped()
	sub.mapped = shared && s.link.SendsDescriptors() && f.Mode == fifo.Write
	sub.inPlace = sub.mapped && inPlace
	if err := s.admitMirror(f.ID, l, f.OK); err != nil {
		s.link.Send(transport.Frame{Kind: transport.Opened, ID: f.ID, Code: CodeOf(err), Text: l.Refuse(err).Error()})
		return
	}
	opened := transport.Frame{
		Kind: transport.Opened, ID: f.ID, Mirror: l.Number(), OK: sub.mapped, Size: s.limits.Size,
	}
	if sub.inPlace {
		opened.Mode = fifo.Write
	}
	s.mu.Lock()
	before := s.mirrorOf[l]
	if before == 0 || f.OK {
		s.subscribed[f.ID], s.mirrorOf[l] = sub, f.ID
	}
	s.mu.Unlock()
	if before != 0 && !f.OK {
		s.link.Send(transport.Frame{Kind: transport.Opened, ID: f.ID, Next: before})
		return
	}
	s.link.Send(opened)
}

// admitMirror refuses a mirror, unless it need not be opened because there is one.
func (s *Session) admitMirror(id uint64, l Location, again bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.limits.Mirrors
	switch {
	case s.subscribed[id] != nil:
		return ErrBusy
	case len(s.subscribed) >= limit && (again || s.mirrorOf[l] == 0):
		return fmt.Errorf("%d are open: %w", limit, ErrTooManyMirrors)
	}
	return nil
}

// newProxy registers a request, unless its mirror is unknown or there are too
// many.
func (s *Session) newProxy(r transport.Posting) (*proxy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscribed[r.Mirror]
	switch {
	case sub == nil:
		return nil, ErrUnknown
	case len(s.proxies) >= s.limits.Requests:
		return nil, sub.location.Refuse(ErrFull)
	case s.proxies[r.ID] != nil:
		return nil, sub.location.Refuse(ErrBusy)
	}
	p := &proxy{id: r.ID, sub: sub, task: cmp.Or(r.Task, s.link.Process)}
	p.Request = sub.location.Request(p.task, func() { s.granted(p) })
	s.proxies[r.ID] = p
	return p, nil
}

func (s *Session) find(id uint64) *proxy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proxies[id]
}

func (s *Session) isUnsettled(p *proxy) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.unsettled
}

func (s *Session) forget(p *proxy) {
	s.mu.Lock()
	delete(s.proxies, p.id)
	s.mu.Unlock()
}

func (s *Session) refuse(id uint64, err error) {
	s.link.Send(transport.Frame{Kind: transport.Refused, ID: id, Code: CodeOf(err), Text: err.Error()})
}

func (s *Session) request(f *transport.Frame) {
	p, err := s.newProxy(transport.Posting{ID: f.ID, Mirror: f.Mirror, Task: f.Text})
	if err == nil {
		if err = p.Insert(f.Mode, int(f.Rank)); err != nil {
			s.forget(p)
		}
	}
	if err != nil {
		s.refuse(f.ID, err)
	}
}

// release takes what a writer changed, but only under the grant that it was
// written under and that the other process still has, and only when it has come
// completely.
func (s *Session) release(f *transport.Frame) error {
	p := s.holder(f)
	if p == nil {
		s.refuse(f.ID, ErrStale)
		return s.link.Skip()
	}
	l := p.sub.location
	if f.OK {
		if f.Size > max(s.limits.Size, int64(l.Size())) {
			return fmt.Errorf("location %s: %d bytes: %w", l.Name(), f.Size, ErrTooLarge)
		}
		err := s.take(f.DataLength())
		if err == nil {
			p.sub.version, err = p.Overwrite(int(f.Size), f.Extents, s.taken, p.sub.inPlace)
		}
		if err != nil {
			return err
		}
	}
	s.forget(p)
	if f.Next == 0 {
		return p.Release()
	}
	next, err := s.newProxy(transport.Posting{ID: f.Next, Mirror: p.sub.id, Task: p.task})
	if err != nil {
		s.refuse(f.Next, err)
		return p.Release()
	}
	if err := p.Cycle(next.Request); err != nil {
		s.forget(next)
		s.refuse(f.Next, err)
	}
	return nil
}

// holder returns the proxy that a release is of; nil where the release is not of the grant
// that it has now, or writes without a write lock. It waits until the data of the grant has
// left. The other process has all of it when it releases; one that releases earlier must not
// have the memory go while it is sent, and loses its connection if it does not read it all
// within a lease.
func (s *Session) holder(f *transport.Frame) *proxy {
	s.mu.Lock()
	p := s.proxies[f.ID]
	s.link.AwaitOtherEnd(func() {
		for p != nil && p.sending {
			s.dataSent.Wait()
		}
	})
	told := p != nil && p.grantSent
	s.mu.Unlock()
	if !told || !p.Holds() || p.Generation() != f.Generation {
		return nil
	}
	if !f.OK && len(f.Extents) > 0 || f.OK && !p.Writes() {
		return nil
	}
	return p
}

// takeStep is how much memory a peer gets for data that it has announced and not yet sent.
const takeStep = 1 << 20

// take reads n bytes of data.
func (s *Session) take(n int) error {
	s.taken = s.taken[:0]
	for len(s.taken) < n {
		at := len(s.taken)
		step := min(n-at, max(takeStep, cap(s.taken)-at))
		s.taken = slices.Grow(s.taken, step)[:at+step]
		if _, err := io.ReadFull(s.link, s.taken[at:]); err != nil {
			return err
		}
	}
	return nil
}

// End gives up all that the other process had. Nothing is sent any more.
func (s *Session) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.cancel()
	s.tasks.Wait()
	rest := s.rest()
	for _, p := range rest {
		p.MissAtStart()
	}
	for _, r := range s.reservations {
		s.takeBack(r)
	}
	for _, p := range rest {
		switch {
		case p.Withdraw() || !p.Holds():
		case p.grantSent && p.Writes():
			p.Lose(p.sub.inPlace)
		default:
			p.Release()
		}
	}
}

// rest returns the requests that are left at the end.
func (s *Session) rest() []*proxy {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := make([]*proxy, 0, len(s.proxies))
	for _, p := range s.proxies {
		p.cancelled = true
		rest = append(rest, p)
	}
	return rest
}

// granted is called when the fate of a proxy is decided: it tells the other
// process, and sends what it lacks of the data.
func (s *Session) granted(p *proxy) {
	if err := p.Failure(); err != nil {
		s.forget(p)
		s.refuse(p.id, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.cancelled && !s.ended {
		s.sendGrantLocked(p)
	}
}

// sendGrantLocked sends a grant, under the lock of the Session.
func (s *Session) sendGrantLocked(p *proxy) {
	sub := p.sub
	data, version, file, lacks := sub.location.Lacked(sub.has, sub.version, sub.mapped)
	f := transport.Frame{
		Kind: transport.Granted, ID: p.id, Mirror: sub.id, Generation: p.Generation(), Version: version,
		Size: int64(len(data)), Extents: lacks, Text: p.By(),
	}
	sub.has, sub.version, p.grantSent = true, version, true
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
func (s *Session) sent(p *proxy) {
	s.mu.Lock()
	p.sending = false
	s.dataSent.Broadcast()
	cancelled := p.cancelled
	s.mu.Unlock()
	if cancelled {
		p.Release()
	}
}

// withdraw takes out a request, or releases it unless its data is being sent.
func (s *Session) withdraw(p *proxy) {
	s.forget(p)
	if p.Withdraw() {
		return
	}
	s.mu.Lock()
	p.cancelled = true
	sending := p.sending
	s.mu.Unlock()
	if !sending {
		p.Release()
	}
}
