package orwl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"fairway/lib/orwl/internal/distribution"
	"fairway/lib/orwl/internal/transport"
)

// Peer is another process at the end of a connection, as the owner of
// locations. All its methods may be called by any goroutine.
//
// When the connection is lost, everything held and requested through it is
// lost: waits end with ErrLeaseLost, and releases too. The end that dialled
// dials again, with growing pauses, until a lease has passed; meanwhile requests are
// refused with ErrLeaseLost, and Connected waits. Afterwards its mirrors can
// be requested again.
type Peer struct {
	other   string  // the name of the process at the other end
	server  *Server // what this process serves there, or nil
	maxSize int64   // of what comes
	strict  bool
	redial  func(context.Context) (*transport.Link, error) // nil where nobody dials again
	ctx     context.Context                                // ends with Close
	close   context.CancelFunc
	over    chan struct{} // closed when there will be no connection any more

	mu      sync.Mutex
	link    *transport.Link       // the present connection, or the last one
	session *distribution.Session // what the other process has here by it; nil where nothing is served
	next    uint64
	pending map[uint64]*Handle // requests that wait
	mirrors map[uint64]*Mirror
	replies map[uint64]chan error // to open and to reserve
	pinned  map[*Handle]struct{}  // those that have memory of the other process mapped; see mapping.go
	err     error                 // why there is no connection
	unsaid  bool                  // a write was released, and nobody has said that it arrived
	doubt   bool                  // the connection was lost then
	restore chan struct{}         // closed when there is one again
}

func newPeer(l *transport.Link, server *Server) *Peer {
	p := &Peer{
		other: l.Process, server: server, maxSize: DefaultMaxSize, over: make(chan struct{}), restore: make(chan struct{}),
		pending: make(map[uint64]*Handle), mirrors: make(map[uint64]*Mirror), replies: make(map[uint64]chan error),
		pinned: make(map[*Handle]struct{}),
	}
	p.ctx, p.close = context.WithCancel(context.Background())
	p.bindLocked(l)
	return p
}

// bindLocked makes l, which nobody has yet, the connection of the peer.
func (p *Peer) bindLocked(l *transport.Link) {
	p.link = l
	by := transport.Handlers{Answered: p.answered, Idle: p.idle}
	if p.server != nil {
		p.session = distribution.NewSession(l, servedLocations{p.server}, p.server.limits())
		by.Asked = p.session.Asked
	}
	l.Use(by)
}

// cut ends the present connection, without waiting.
func (p *Peer) cut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link.Cut()
}

// Name returns the name of the process at the other end, which is different for
// each process: what ProcessName returns there. It is what that process says.
func (p *Peer) Name() string { return p.other }

// Sync returns nil when everything that was released by this peer since the last Sync has
// arrived at the owner and counts. That Release returns nil does not say so: it only hands
// over. An error says that what was released meanwhile may be lost.
func (p *Peer) Sync(ctx context.Context) error {
	p.mu.Lock()
	doubt := p.doubt
	p.doubt = false
	p.mu.Unlock()
	if doubt {
		return fmt.Errorf("a write was released before the connection was lost, and may not have arrived: %w", ErrLeaseLost)
	}
	err := p.ask(ctx, func(id uint64) transport.Frame {
		p.unsaid = false
		return transport.Frame{Kind: transport.Sync, ID: id}
	})
	if err != nil {
		p.mu.Lock()
		p.unsaid = p.unsaid || ctx.Err() != nil // it may be asked again
		p.mu.Unlock()
		return fmt.Errorf("what was released may not have arrived: %w", err)
	}
	return nil
}

// Close ends the connection and everything held or requested through it. Before, it waits
// until what was released has arrived, as Sync does, for a lease at most; the error says
// that it may not have.
func (p *Peer) Close() error {
	err := p.syncLast()
	return errors.Join(err, p.end())
}

// syncLast is the Sync of Close: only where there is a connection and something to ask.
func (p *Peer) syncLast() error {
	p.mu.Lock()
	lease, ask := p.link.Lease, p.unsaid && p.err == nil || p.doubt
	p.mu.Unlock()
	if !ask {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, lease)
	defer cancel()
	return p.Sync(ctx)
}

func (p *Peer) end() error {
	p.close()
	err := p.cut()
	<-p.over
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Done is closed when there is no connection and none will be made again: after
// Close, and when a lease has passed without one.
func (p *Peer) Done() <-chan struct{} { return p.over }

// Mirror opens a location of the other process. One that is open already has one
// mirror, which is returned: its readers share what is sent.
func (p *Peer) Mirror(ctx context.Context, name string) (*Mirror, error) {
	if err := checkName("the name of a location", name); err != nil {
		return nil, err
	}
	if !p.serves() {
		return nil, fmt.Errorf("opening location %s: process %s serves none by this connection (Dialer.Serve): %w", name,
			p.other, ErrUnknown)
	}
	m := &Mirror{peer: p, name: name}
	err := p.ask(ctx, func(id uint64) transport.Frame {
		m.id, m.replica = id, distribution.NewReplica(p.link)
		p.mirrors[id] = m
		return p.opening(id, name)
	})
	if err != nil {
		return nil, fmt.Errorf("opening location %s: %w", name, err)
	}
	if m.twin != nil {
		return m.twin, nil
	}
	return m, nil
}

func (p *Peer) serves() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link.Serves
}

// opening asks for a location. Strict mode maps for each handle by itself, and so takes a
// copy of memory that is shared.
func (p *Peer) opening(id uint64, name string) transport.Frame {
	f := transport.Frame{Kind: transport.Open, ID: id, Text: name, Mode: Write}
	if p.strict {
		f.Mode = Read
	}
	return f
}

// ask sends a frame and waits for the reply to its id. The frame is composed
// under the lock.
func (p *Peer) ask(ctx context.Context, compose func(id uint64) transport.Frame) error {
	reply := make(chan error, 1)
	p.mu.Lock()
	if err := p.err; err != nil {
		p.mu.Unlock()
		return err
	}
	p.next++
	id := p.next
	p.replies[id] = reply
	p.link.Send(compose(id))
	p.mu.Unlock()
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.replies, id)
		p.mu.Unlock()
		return ctx.Err()
	}
}

// answered takes a frame of the present connection, on the goroutine that reads it.
func (p *Peer) answered(f *transport.Frame) error {
	switch f.Kind {
	case transport.Opened:
		return p.opened(f)
	case transport.Granted:
		return p.granted(f)
	case transport.Refused:
		p.refused(f)
	case transport.Answered:
		if f.OK {
			p.reply(f.ID, nil)
		} else {
			p.reply(f.ID, distribution.Refusal(f))
		}
	}
	return nil
}

func (p *Peer) reply(id uint64, err error) {
	p.mu.Lock()
	reply := p.replies[id]
	delete(p.replies, id)
	p.mu.Unlock()
	if reply != nil {
		reply <- err
	}
}

func (p *Peer) opened(f *transport.Frame) error {
	p.mu.Lock()
	m, twin := p.mirrors[f.ID], p.mirrors[f.Next]
	if m != nil {
		m.location, m.twin = f.Mirror, twin
	}
	if f.Text != "" || twin != nil {
		delete(p.mirrors, f.ID)
	}
	p.mu.Unlock()
	switch {
	case m == nil || f.Next != 0 && twin == nil:
		return fmt.Errorf("%w: an answer for an unknown mirror", transport.ErrMalformed)
	case f.Text != "":
		p.reply(f.ID, distribution.Refusal(f))
		return nil
	case twin == nil:
		if err := m.replica.Opens(f, m.name, p.strict); err != nil {
			return err
		}
	}
	p.reply(f.ID, nil)
	return nil
}

// granted brings the mirror up to date and wakes the task. The grant of a
// request that was cancelled meanwhile carries data all the same, since the
// owner goes by what it has sent.
func (p *Peer) granted(f *transport.Frame) error {
	p.mu.Lock()
	m, holding := p.mirrors[f.Mirror], 0
	if m != nil {
		holding = m.replica.Held
	}
	p.mu.Unlock()
	if m == nil {
		return fmt.Errorf("%w: a grant for an unknown mirror", transport.ErrMalformed)
	}
	if err := m.replica.Update(f, p.maxSize, holding); err != nil {
		return m.refuse(err)
	}
	p.mu.Lock()
	h := p.pending[f.ID]
	delete(p.pending, f.ID)
	if h != nil && h.remote.replica != m.replica {
		p.mu.Unlock()
		return fmt.Errorf("%w: a grant of another location", transport.ErrMalformed)
	}
	if h != nil {
		h.generation, h.state = f.Generation, held
		m.replica.Held++
		if h.traced != nil {
			h.traced.grant(f.Text)
		}
	}
	p.mu.Unlock()
	if h != nil {
		wakeList{h, h}.up()
	}
	return nil
}

func (p *Peer) refused(f *transport.Frame) {
	p.mu.Lock()
	h := p.pending[f.ID]
	delete(p.pending, f.ID)
	if h != nil {
		h.traced.end()
		h.state, h.err = failed, distribution.Refusal(f)
	}
	p.mu.Unlock()
	if h != nil {
		wakeList{h, h}.up()
	}
}

// ended says why a connection is lost.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("connection ended: %w", ErrLeaseLost)
	}
	return fmt.Errorf("%w: %w", err, ErrLeaseLost)
}

// fail ends everything that depended on the connection.
func (p *Peer) fail(err error) {
	p.mu.Lock()
	p.err = err
	p.doubt, p.unsaid = p.doubt || p.unsaid, false
	var wake wakeList
	for _, h := range p.pending {
		h.traced.end()
		h.state, h.err = failed, fmt.Errorf("location %s: %w", h.res.Name(), err)
		wake.add(h)
	}
	clear(p.pending)
	clear(p.pinned)
	replies := p.replies
	p.replies = make(map[uint64]chan error)
	p.mu.Unlock()
	wake.up()
	for _, reply := range replies {
		reply <- err
	}
}

// pin keeps what h has mapped as long as the connection lasts, or until h releases it.
func (p *Peer) pin(h *Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && p.link == h.remote.replica.Link {
		p.pinned[h] = struct{}{}
	}
}

// idle reports whether no request waits here.
func (p *Peer) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending) == 0
}

func (p *Peer) ownerID() string { return p.other }

type peerReservation struct {
	peer     *Peer
	link     *transport.Link
	id       uint64
	postings []Posting
}

// requestsPerFrame is so that the longest names fit into a frame.
const requestsPerFrame = 512

// reserve asks the owner to insert the requests behind a latch.
func (p *Peer) reserve(ctx context.Context, postings []Posting) (reservation, error) {
	for _, q := range postings {
		if err := checkName("the name of a handle", q.handle.Name); err != nil {
			return nil, q.refuse(err)
		}
	}
	r := &peerReservation{peer: p, postings: postings}
	err := p.ask(ctx, func(id uint64) transport.Frame {
		r.id, r.link = id, p.link
		f := transport.Frame{Kind: transport.Reserve, ID: id, OK: true}
		for i, q := range postings {
			if i > 0 && i%requestsPerFrame == 0 {
				p.link.Send(transport.Frame{Kind: transport.Reserve, ID: id, Requests: f.Requests})
				f.Requests = f.Requests[:0]
			}
			m := q.resource.(*Mirror)
			m.awaitLocked(q.handle, q.mode)
			f.Requests = append(f.Requests, transport.Posting{
				ID: q.handle.remote.id, Mirror: m.id, Mode: q.mode, Rank: int64(q.Rank), Task: q.handle.Name,
			})
		}
		return f
	})
	if err != nil && r.link != nil {
		r.settle(false)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// settle ends a reservation. One that is not kept takes all its requests along, at the
// owner and here.
func (r *peerReservation) settle(keep bool) {
	r.link.Send(transport.Frame{Kind: transport.Settle, ID: r.id, OK: keep})
	if !keep {
		r.peer.dismiss(r.postings)
	}
}

// dismiss forgets requests that their owner takes back.
func (p *Peer) dismiss(postings []Posting) {
	var decided []*Handle
	p.mu.Lock()
	for _, q := range postings {
		h := q.handle
		if h.state != waiting {
			decided = append(decided, h)
			if h.state == held {
				h.remote.replica.Held--
			}
			continue
		}
		delete(p.pending, h.remote.id)
		h.traced.end()
		h.state, h.pending = idle, false
	}
	p.mu.Unlock()
	for _, h := range decided { // it was granted or failed meanwhile
		<-h.token.Channel()
		h.token.Taken()
		h.traced.end()
		h.state, h.pending = idle, false
	}
}
