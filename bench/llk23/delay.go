package main

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// delayed is a listener whose connections take a time longer in each direction, as on a line of
// that length. (Linux has the queue discipline netem for it, which not every kernel has.)
type delayed struct {
	net.Listener
	by time.Duration
}

func (l delayed) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || l.by == 0 {
		return conn, err
	}
	return newDelayedConn(conn, l.by), nil
}

// parcel is bytes on their way.
type parcel struct {
	due   time.Time
	bytes []byte
	err   error
}

// onTheWay bounds the parcels of a direction.
const onTheWay = 4096

type delayedConn struct {
	net.Conn
	by      time.Duration
	in, out chan parcel
	rest    parcel // of which something is still to be read
	closed  chan struct{}
	once    sync.Once
}

func newDelayedConn(conn net.Conn, by time.Duration) *delayedConn {
	c := &delayedConn{
		Conn: conn, by: by, in: make(chan parcel, onTheWay), out: make(chan parcel, onTheWay), closed: make(chan struct{}),
	}
	go c.receive()
	go c.deliver()
	return c
}

func (c *delayedConn) receive() {
	for {
		b := make([]byte, 64<<10)
		n, err := c.Conn.Read(b)
		select {
		case c.in <- parcel{time.Now().Add(c.by), b[:n], err}:
		case <-c.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *delayedConn) deliver() {
	for {
		select {
		case p := <-c.out:
			time.Sleep(time.Until(p.due))
			if _, err := c.Conn.Write(p.bytes); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

func (c *delayedConn) Read(b []byte) (int, error) {
	if len(c.rest.bytes) == 0 && c.rest.err == nil {
		select {
		case c.rest = <-c.in:
			time.Sleep(time.Until(c.rest.due))
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	n := copy(b, c.rest.bytes)
	c.rest.bytes = c.rest.bytes[n:]
	if n == 0 {
		return 0, c.rest.err
	}
	return n, nil
}

func (c *delayedConn) Write(b []byte) (int, error) {
	select {
	case c.out <- parcel{due: time.Now().Add(c.by), bytes: bytes.Clone(b)}:
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

// Close does not wait for what is on its way.
func (c *delayedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
