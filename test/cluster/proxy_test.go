package cluster

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/lib/sched"
	"fairway/test/netns"
)

// proxy stands between the line of the login node and the server, and delays what passes.
type proxy struct {
	t        *testing.T
	at       *netns.Host
	server   string
	listener net.Listener
	delay    atomic.Int64
	group    sync.WaitGroup
}

// through is one of many pieces of a stream, and when it may go on.
type through struct {
	data []byte
	at   time.Time
}

// newProxy has all that comes to a port of a host from others pass through it.
func newProxy(t *testing.T, at *netns.Host, port int) *proxy {
	t.Helper()
	p := &proxy{t: t, at: at, server: fmt.Sprintf("%s:%d", at.Address, port)}
	err := at.Inside(func() (err error) {
		p.listener, err = net.Listen("tcp", fmt.Sprintf("%s:%d", at.Address, port+1))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	at.Filter(fmt.Sprintf("table ip pass {\n chain in {\n type nat hook prerouting priority -100;\n iifname \"eth0\" "+
		"tcp dport %d redirect to :%d\n }\n}\n", port, port+1))
	p.group.Go(p.serve)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.group.Wait()
	})
	return p
}

func (p *proxy) serve() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.join(from.(*net.TCPConn)) })
	}
}

// join carries both directions of a connection until one of them is broken.
func (p *proxy) join(from *net.TCPConn) {
	defer from.Close()
	var to net.Conn
	err := p.at.Inside(func() (err error) {
		to, err = net.Dial("tcp", p.server)
		return err
	})
	if err != nil {
		_ = from.SetLinger(0) // as if nobody listened
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	carry := func(from, to net.Conn) {
		p.carry(from, to)
		_, _ = from.Close(), to.Close()
	}
	both.Go(func() { carry(from, to) })
	both.Go(func() { carry(to, from) })
	both.Wait()
}

// carry hands on what comes, late by the delay of the moment in which it came.
func (p *proxy) carry(from, to net.Conn) {
	pieces := make(chan through, 1024)
	var group sync.WaitGroup
	group.Go(func() {
		broken := false
		for piece := range pieces {
			if broken {
				continue
			}
			if time.Until(piece.at) > 0 {
				_ = sched.Default().WaitUntil(p.t.Context(), piece.at)
			}
			if _, err := to.Write(piece.data); err != nil {
				broken = true
				_ = from.Close()
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- through{append([]byte(nil), buffer[:n]...), time.Now().Add(time.Duration(p.delay.Load()))}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	group.Wait()
}
