package orwl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"fairway/lib/orwl/internal/transport"
)

// Group is a number of processes that share their locations. Each is started with the same
// addresses and its own number, joins, inserts its requests and finishes:
//
//	g := orwl.Group{Addresses: addresses, Process: k, Patience: time.Minute}
//	m, err := g.Join(ctx, own)                  // serves own, and dials the others
//	defer m.Close()
//	above, err := m.Resource(ctx, "row 3")      // a location of whoever has it
//	err = orwl.Insert(ctx, a.Writing(own).At(rank), b.Reading(above).At(rank))
//	...
//	err = m.Finish(ctx)                         // what it wrote has arrived, and all others are done
type Group struct {
	// Addresses are where the processes listen: host:port, or the path of a Unix socket, which
	// is told by its slash.
	Addresses []string
	// Process is the number of this one, from 0.
	Process int
	// TLS is needed where the processes are on several hosts; LoadTLS makes one. It is for
	// both ends of the connections.
	TLS *tls.Config
	// Neighbours are the processes whose locations this one uses; nil means all others.
	Neighbours []int
	// Patience is how long the others may take to start. Zero tries once.
	Patience time.Duration
	// Lease is that of Server and Dialer.
	Lease time.Duration
}

// Network says what an address of a group is for net.Listen: "unix" for a path, else "tcp".
func Network(address string) string {
	if strings.Contains(address, "/") {
		return "unix"
	}
	return "tcp"
}

// LoadTLS makes the configuration of a group from files (PEM): the certificate of this process and
// its key, and the certificates that those of all processes are signed with. Others are refused.
func LoadTLS(certificate, key, authorities string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate of this process: %w", err)
	}
	pem, err := os.ReadFile(authorities)
	if err != nil {
		return nil, fmt.Errorf("certificates of the group: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates of the group: %s has none", authorities)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: pool,
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// Member is a process of a group that has joined it. Any goroutine may call its methods.
type Member struct {
	group    Group
	gang     *gang     // nil where the group was given by hand
	fence    *Location // of a gang
	listener net.Listener
	server   Server
	served   chan struct{} // closed when nothing is served any more; nil before Serve
	err      error         // why, set before
	own      map[string]*Location
	peers    []*Peer // by process; nil where none was dialled
	saving   *Checkpoints
}

// Join serves the locations and dials the neighbours. After an error nothing is left behind.
func (g Group) Join(ctx context.Context, locations ...*Location) (*Member, error) {
	m, err := g.open()
	if err != nil {
		return nil, err
	}
	if err := m.Serve(ctx, locations...); err != nil {
		return nil, err
	}
	return m, nil
}

// open takes the place of this process in the group, and serves nothing yet.
func (g Group) open() (*Member, error) {
	if g.Process < 0 || g.Process >= len(g.Addresses) {
		return nil, fmt.Errorf("there is no process %d in a group of %d", g.Process, len(g.Addresses))
	}
	m := &Member{group: g, own: make(map[string]*Location), peers: make([]*Peer, len(g.Addresses))}
	m.server.Lease = g.Lease
	address := g.Addresses[g.Process]
	var err error
	if m.listener, err = net.Listen(Network(address), address); err != nil {
		return nil, fmt.Errorf("process %d: %w", g.Process, err)
	}
	if g.TLS == nil && !transport.OnThisMachine(m.listener.Addr()) {
		err := fmt.Errorf("process %d, at %s: %w: set Group.TLS, which LoadTLS makes", g.Process, address, ErrInsecure)
		return nil, errors.Join(err, m.listener.Close())
	}
	return m, nil
}

// Process is the number of this process in the group, from 0.
func (m *Member) Process() int { return m.group.Process }

// Processes is how many the group has.
func (m *Member) Processes() int { return len(m.group.Addresses) }

// Serve serves the locations and dials the neighbours, once in the life of a member; Group.Join has
// done it. After an error nothing is left behind.
func (m *Member) Serve(ctx context.Context, locations ...*Location) error {
	if m.served != nil {
		return fmt.Errorf("process %d serves already: give all its locations at once", m.Process())
	}
	for _, l := range locations {
		m.own[l.Name()] = l
	}
	m.server.Add(locations...)
	m.served = make(chan struct{})
	go func() {
		defer close(m.served)
		m.err = m.group.serve(&m.server, m.listener)
	}()
	err := m.dial(ctx)
	if err == nil && m.gang != nil {
		start, cancel := context.WithTimeout(ctx, JoinPatience)
		defer cancel()
		err = m.meet(start, m.fence)
	}
	if err != nil {
		return errors.Join(err, m.Close(), m.err)
	}
	return nil
}

func (g Group) serve(s *Server, listener net.Listener) (err error) {
	if g.TLS != nil {
		err = s.ServeTLS(listener, g.TLS)
	} else {
		err = s.Serve(listener)
	}
	if errors.Is(err, net.ErrClosed) { // it was shut down before it began
		return nil
	}
	return err
}

func (m *Member) dial(ctx context.Context) error {
	g := m.group
	neighbours := g.Neighbours
	if neighbours == nil {
		for k := range g.Addresses {
			neighbours = append(neighbours, k)
		}
	}
	for _, k := range neighbours {
		if k < 0 || k >= len(m.peers) {
			return fmt.Errorf("there is no process %d in a group of %d", k, len(m.peers))
		}
		if k == g.Process || m.peers[k] != nil {
			continue
		}
		p, err := m.reach(ctx, g.Addresses[k])
		if err != nil {
			return fmt.Errorf("process %d: %w", k, err)
		}
		m.peers[k] = p
	}
	return nil
}

// reach dials a process of the group, which in a gang must be of the same attempt.
func (m *Member) reach(ctx context.Context, address string) (*Peer, error) {
	d := Dialer{TLS: m.group.TLS, Patience: m.group.Patience, Lease: m.group.Lease}
	p, err := d.Dial(ctx, Network(address), address)
	if err != nil || m.gang == nil {
		return p, err
	}
	if _, err := m.gang.mirrorOfFence(ctx, p); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", address, err), p.Close())
	}
	return p, nil
}

// Peer returns the connection to a process, or nil where that is no neighbour.
func (m *Member) Peer(process int) *Peer { return m.peers[process] }

// Resource returns a location by its name: one of this process, or a mirror of one of a
// neighbour. ErrUnknown says that nobody serves it.
func (m *Member) Resource(ctx context.Context, name string) (Resource, error) {
	if l := m.own[name]; l != nil {
		return l, nil
	}
	for _, p := range m.peers {
		if p == nil {
			continue
		}
		mirror, err := p.Mirror(ctx, name)
		if err == nil {
			return mirror, nil
		}
		if !errors.Is(err, ErrUnknown) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("location %s: neither this process nor a neighbour serves it: %w", name, ErrUnknown)
}

// Finish ends the part of this process. It returns nil when what the process has released has
// arrived, and the others have finished their parts or are lost: they can read its locations until
// then. When ctx ends first it closes at once. It also ends the checkpoints.
func (m *Member) Finish(ctx context.Context) error {
	if m.served == nil {
		return m.Close()
	}
	left := m.leave()
	done := m.server.Shutdown(ctx)
	<-m.served
	return errors.Join(left, done, m.err, m.saving.finish(ctx))
}

// Close ends the part of this process without waiting for the others. After Finish it does nothing.
func (m *Member) Close() error {
	m.saving.close()
	if m.served == nil {
		if err := m.listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
	left := m.leave()
	m.server.Close()
	<-m.served
	return left
}

// leave closes the connections to the neighbours.
func (m *Member) leave() error {
	var errs []error
	for _, p := range m.peers {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}
