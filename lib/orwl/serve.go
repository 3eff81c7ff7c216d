package orwl

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"fairway/lib/orwl/internal/distribution"
	"fairway/lib/orwl/internal/transport"
)

// Server lets other processes request locations of this one.
type Server struct {
	// Lease is how long a process may be silent before it loses what it holds;
	// 0 means DefaultLease. It must not change once the server serves.
	Lease time.Duration
	// MaxRequests limits the requests of each connection; 0 means
	// DefaultMaxRemote. Those beyond are refused with ErrFull.
	MaxRequests int
	// MaxMirrors limits the mirrors that each connection may have open; 0 means
	// DefaultMaxMirrors. Those beyond are refused with ErrTooManyMirrors.
	MaxMirrors int
	// MaxSize limits the size in bytes that another process may give a
	// location; 0 means DefaultMaxSize. A location that is larger keeps its size.
	// Beyond it Handle.Resize in that process fails with ErrTooLarge.
	MaxSize int64
	// MaxConnections limits the connections at the same time, with those that have not
	// said who they are, which they must do within a lease; 0 means
	// DefaultMaxConnections. Those beyond are closed at once.
	MaxConnections int

	mu          sync.Mutex
	locations   map[string]*Location
	peers       map[*Peer]struct{} // connected
	listeners   map[net.Listener]struct{}
	connections int
	arrived     chan struct{}   // closed when one more process is connected
	ctx         context.Context // ends with Close; nil before Serve
	cancel      context.CancelFunc
	finishing   bool // no new connections
	closed      bool
	running     sync.WaitGroup
}

// Add serves locations under their names. A later one replaces an earlier one
// of the same name for those who open it from then on.
func (s *Server) Add(locations ...*Location) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locations == nil {
		s.locations = make(map[string]*Location)
	}
	for _, l := range locations {
		s.locations[l.name] = l
	}
}

// limits are what each other process may have here.
func (s *Server) limits() distribution.Limits {
	return distribution.Limits{
		Requests: cmp.Or(s.MaxRequests, DefaultMaxRemote), Mirrors: cmp.Or(s.MaxMirrors, DefaultMaxMirrors),
		Size: sizeLimit(s.MaxSize),
	}
}

func sizeLimit(bytes int64) int64 {
	if bytes > 0 {
		return bytes
	}
	return DefaultMaxSize
}

func (s *Server) location(name string) (*Location, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locations[name]
	if l == nil {
		return nil, fmt.Errorf("location %s: %w", name, ErrUnknown)
	}
	return l, nil
}

// Serve accepts connections until Close or an error of the listener. A
// listener that others than this machine can reach is refused: use ServeTLS.
func (s *Server) Serve(listener net.Listener) error {
	if !transport.OnThisMachine(listener.Addr()) {
		listener.Close()
		return fmt.Errorf("serving on %v: %w", listener.Addr(), ErrInsecure)
	}
	return s.serve(listener)
}

// ServeTLS serves by TLS. For locations not to be open to everybody the
// configuration must ask for certificates of clients.
func (s *Server) ServeTLS(listener net.Listener, c *tls.Config) error {
	return s.serve(tls.NewListener(listener, c))
}

func (s *Server) serve(listener net.Listener) error {
	if !s.enter(listener) {
		listener.Close()
		return net.ErrClosed
	}
	defer s.leave(listener)
	for pause := distribution.FirstPause; ; {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			pause = distribution.FirstPause
			s.admit(conn)
		case errors.Is(err, net.ErrClosed):
			return nil
		case !passes(err) || distribution.Nap(s.ctx, pause) != nil:
			return fmt.Errorf("accepting connections: %w", err)
		default:
			pause = min(2*pause, distribution.LongestPause)
		}
	}
}

// passes reports whether accepting may succeed later: the process or the system has no
// descriptors or memory left now.
func passes(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM},
		func(e error) bool { return errors.Is(err, e) })
}

// admit serves a connection, unless there are too many.
func (s *Server) admit(conn net.Conn) {
	limit := s.MaxConnections
	if limit == 0 {
		limit = DefaultMaxConnections
	}
	s.mu.Lock()
	full := s.connections >= limit
	if !full {
		s.connections++
	}
	s.mu.Unlock()
	if full {
		transport.SocketOf(conn).Close()
		return
	}
	s.running.Go(func() {
		s.attend(conn)
		s.mu.Lock()
		s.connections--
		s.mu.Unlock()
	})
}

func (s *Server) enter(listener net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.finishing {
		return false
	}
	if s.listeners == nil {
		s.listeners, s.peers = make(map[net.Listener]struct{}), make(map[*Peer]struct{})
		s.ctx, s.cancel = context.WithCancel(context.Background())
	}
	s.listeners[listener] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) leave(listener net.Listener) {
	s.mu.Lock()
	delete(s.listeners, listener)
	s.mu.Unlock()
	listener.Close()
	s.running.Done()
}

// attend serves one connection to its end.
func (s *Server) attend(conn net.Conn) {
	l, err := transport.Connect(s.ctx, conn, transport.Hello{Process: processID, Serves: true, Lease: leaseOf(s.Lease)})
	if err != nil {
		return
	}
	p := newPeer(l, s)
	p.maxSize = sizeLimit(s.MaxSize)
	s.mu.Lock()
	closed := s.closed
	s.peers[p] = struct{}{}
	s.announceLocked()
	s.mu.Unlock()
	if closed {
		l.Cut()
	}
	p.serveLinks(l)
	s.mu.Lock()
	delete(s.peers, p)
	s.mu.Unlock()
}

// Peer waits until a process has dialled this server that serves locations by its own side
// of the connection (Dialer.Serve), and returns it, so that they can be requested without a
// second connection. The name is that of ProcessName there, which that process tells by a
// location, say. When its connection is lost, ask for it again.
func (s *Server) Peer(ctx context.Context, name string) (*Peer, error) {
	for {
		s.mu.Lock()
		if s.arrived == nil {
			s.arrived = make(chan struct{})
		}
		p, arrived, closed := s.peerLocked(name), s.arrived, s.closed
		s.mu.Unlock()
		switch {
		case p != nil:
			return p, nil
		case closed:
			return nil, fmt.Errorf("process %s: the server is closed: %w", name, net.ErrClosed)
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for process %s to dial: %w", name, ctx.Err())
		}
	}
}

func (s *Server) peerLocked(name string) *Peer {
	for p := range s.peers {
		if p.other == name && p.serves() {
			return p
		}
	}
	return nil
}

// announceLocked has those look again who wait for a process.
func (s *Server) announceLocked() {
	if s.arrived != nil {
		close(s.arrived)
		s.arrived = nil
	}
}

// Shutdown waits until all have finished: it accepts no more connections, waits until the
// other processes have closed theirs (or are lost), and closes the server. When ctx ends
// first, it closes at once and returns the error of ctx. Processes that serve each other
// close their own peers first, and then shut down.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.finishing = true
	for listener := range s.listeners {
		listener.Close()
	}
	s.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.running.Wait()
	}()
	select {
	case <-finished:
		s.Close()
		return nil
	case <-ctx.Done():
		s.Close()
		<-finished
		return fmt.Errorf("waiting for other processes to finish: %w", ctx.Err())
	}
}

// Close ends all connections, and with them the requests of other processes,
// and waits until that is done.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.announceLocked()
	if s.cancel != nil {
		s.cancel()
	}
	for listener := range s.listeners {
		listener.Close()
	}
	for p := range s.peers {
		p.cut()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Dialer makes connections to servers. Its zero value is ready for use.
type Dialer struct {
	// Lease is how long the server may be silent before everything held or
	// requested there is lost; 0 means DefaultLease. The shorter one of both
	// ends counts.
	Lease time.Duration
	// MaxSize limits the size in bytes of a location that the server sends; 0
	// means DefaultMaxSize. A larger one ends the connection.
	MaxSize int64
	// Strict lets mirrors find accesses that a lock does not allow, as the
	// option Strict does for a location.
	Strict bool
	// Once ends the peer with its first connection instead of dialling again.
	Once bool
	// Patience is how long Dial goes on when nobody answers, because the server has yet
	// to start, with growing random pauses; 0 tries once. What trying again cannot mend
	// ends Dial at once: a certificate that is refused, a server of another kind.
	Patience time.Duration
	// TLS is needed for connections that leave this machine. Where it has no ServerName,
	// the certificate must be that of the host in the address.
	TLS *tls.Config
	// Serve, where set, lets the other process request locations of this
	// server over the same connection.
	Serve *Server

	failed func(error) // hears of each attempt that failed
}

// Dial connects to a server with the default Dialer.
func Dial(ctx context.Context, network, address string) (*Peer, error) {
	return new(Dialer).Dial(ctx, network, address)
}

// Dial connects to a server: "tcp" or "unix". One connection carries all
// locations of the other process; with "unix" those made with Shared are mapped
// instead of copied. See Peer for what happens when it is lost.
func (d *Dialer) Dial(ctx context.Context, network, address string) (*Peer, error) {
	own, to := *d, d.dialing(network, address)
	l, err := to.Patiently(ctx)
	if err != nil {
		return nil, err
	}
	p := newPeer(l, own.Serve)
	p.maxSize, p.strict = sizeLimit(own.MaxSize), own.Strict
	if !own.Once {
		p.redial = func(ctx context.Context) (*transport.Link, error) { return to.Connect(ctx) }
	}
	go p.serveLinks(l)
	return p, nil
}

func (d *Dialer) dialing(network, address string) *distribution.Dialing {
	return &distribution.Dialing{
		Network: network, Address: address, TLS: d.TLS, Patience: d.Patience, Failed: d.failed,
		Hello: transport.Hello{Process: processID, Serves: d.Serve != nil, Lease: leaseOf(d.Lease)},
	}
}

func leaseOf(lease time.Duration) time.Duration {
	if lease > 0 {
		return max(lease, MinLease)
	}
	return DefaultLease
}
