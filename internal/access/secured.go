package access

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// secured is a listener of connections whose handshake is over, well or not. A goroutine of its own makes it:
// the stack that it takes, 8 kB, would stay with the one that serves the connection, and that waits mostly.
type secured struct {
	net.Listener
	ready  chan accepted
	closed chan struct{}
	once   sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

// newSecured accepts what a listener of [tls.NewListener] does, until that is closed.
func newSecured(l net.Listener) net.Listener {
	s := &secured{Listener: l, ready: make(chan accepted), closed: make(chan struct{})}
	go func() {
		for s.acceptNext() {
		}
	}()
	return s
}

// acceptNext reports whether there may be another one. The server decides what follows an error.
func (s *secured) acceptNext() bool {
	c, err := s.Listener.Accept()
	if err == nil {
		go s.shake(c)
		return true
	}
	select {
	case s.ready <- accepted{err: err}:
		return true
	case <-s.closed:
		return false
	}
}

// shake gives a connection on when its handshake is over. Where that has failed the server says so.
func (s *secured) shake(c net.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), HeaderTime)
	_ = c.(*tls.Conn).HandshakeContext(ctx)
	cancel()
	select {
	case s.ready <- accepted{conn: c}:
	case <-s.closed:
		_ = c.Close()
	}
}

// Accept is part of net.Listener.
func (s *secured) Accept() (net.Conn, error) {
	select {
	case a := <-s.ready:
		return a.conn, a.err
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close is part of net.Listener.
func (s *secured) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Listener.Close()
}
