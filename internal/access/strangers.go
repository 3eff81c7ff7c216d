package access

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of connections. A stranger is one over which no call with a good token came.
const (
	// MaxStrangers is how many there may be at a time. A further one takes the place of
	// the oldest, once that has had its time.
	MaxStrangers = 4096
	// StrangerTime is how long a stranger has at least; it has HeaderTime at most.
	StrangerTime = time.Second
	// MaxLaunchConnections is how many connections a launch may have at a time.
	MaxLaunchConnections = 64
)

// gate is a listener that strangers cannot keep busy: whoever has a token gets in.
type gate struct {
	net.Listener
	most int
	time time.Duration // that a stranger has at least

	left   chan struct{} // holds one when there is room again
	closed chan struct{}
	once   sync.Once

	mu        sync.Mutex // guards what follows, and the fields of connections that say so
	strangers list.List  // of *guarded, the oldest first
	launches  map[string]int
}

func newGate(l net.Listener) *gate {
	return &gate{
		Listener: l, most: MaxStrangers, time: StrangerTime,
		left: make(chan struct{}, 1), closed: make(chan struct{}), launches: map[string]int{},
	}
}

// guarded is a connection that came through a gate.
type guarded struct {
	net.Conn
	gate  *gate
	since time.Time
	// Guarded by the mutex of the gate.
	place  *list.Element // among the strangers; nil: it is none
	launch string        // whose it is
	over   bool
}

// Accept is part of net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for wait := g.makeRoom(); wait > 0; wait = g.makeRoom() {
		later := time.NewTimer(wait)
		select {
		case <-g.left:
		case <-later.C:
		case <-g.closed:
		}
		later.Stop()
	}
	c := &guarded{Conn: conn, gate: g, since: time.Now()}
	g.mu.Lock()
	defer g.mu.Unlock()
	c.place = g.strangers.PushBack(c)
	return c, nil
}

// makeRoom ends the oldest stranger if there is no room for another one and it has had
// its time; else it returns what is left of that.
func (g *gate) makeRoom() (wait time.Duration) {
	g.mu.Lock()
	if g.strangers.Len() < g.most || isClosed(g.closed) {
		g.mu.Unlock()
		return 0
	}
	oldest := g.strangers.Front().Value.(*guarded)
	wait = time.Until(oldest.since.Add(g.time))
	g.mu.Unlock()
	if wait > 0 {
		return wait
	}
	_ = oldest.Close()
	return 0
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Close is part of net.Listener.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// Close is part of net.Conn.
func (c *guarded) Close() error {
	c.gate.mu.Lock()
	if !c.over {
		c.over = true
		c.leave()
		if c.launch != "" {
			if c.gate.launches[c.launch]--; c.gate.launches[c.launch] == 0 {
				delete(c.gate.launches, c.launch)
			}
		}
	}
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// leave takes a connection out of the strangers. The caller holds the mutex of the gate.
func (c *guarded) leave() {
	if c.place == nil {
		return
	}
	c.gate.strangers.Remove(c.place)
	c.place = nil
	select {
	case c.gate.left <- struct{}{}:
	default:
	}
}

// isOf records whose launch a connection belongs to. It reports whether the launch may have
// another one.
func (c *guarded) isOf(launch string) bool {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.launch != "" || c.over {
		return true
	}
	if c.gate.launches[launch] >= MaxLaunchConnections {
		return false
	}
	c.leave()
	c.launch = launch
	c.gate.launches[launch]++
	return true
}

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if g, ok := c.(*guarded); ok {
		return context.WithValue(ctx, connectionKey{}, g)
	}
	return ctx
}

// Admit is for a call whose token is good, or its ticket. It reports whether the launch, or
// who has the ticket, may have the connection of the call.
func Admit(r *http.Request, launch string) bool {
	c, ok := r.Context().Value(connectionKey{}).(*guarded)
	return !ok || c.isOf(launch)
}
