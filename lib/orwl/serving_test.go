package orwl

import (
	"bytes"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// served starts a server for the locations and returns a dialled peer.
func served(t testing.TB, network string, locations ...*Location) (*Server, *Peer) {
	t.Helper()
	s := new(Server)
	s.Add(locations...)
	return s, dialled(t, s, listen(t, network), new(Dialer))
}

func listen(t testing.TB, network string) net.Listener {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "socket")
	}
	l, err := net.Listen(network, address)
	must(t, err)
	return l
}

func dialled(t testing.TB, s *Server, l net.Listener, d *Dialer) *Peer {
	t.Helper()
	go s.Serve(l)
	t.Cleanup(s.Close)
	p, err := d.Dial(background, l.Addr().Network(), l.Addr().String())
	must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func mirror(t testing.TB, p *Peer, name string) *Mirror {
	t.Helper()
	m, err := p.Mirror(background, name)
	must(t, err)
	return m
}

// write changes the data under a lock of its own.
func write(t testing.TB, r Resource, change func(b []byte)) {
	t.Helper()
	var h Handle
	must(t, h.WriteRequest(r))
	must(t, h.Acquire(background))
	b, err := h.WriteMap()
	must(t, err)
	change(b)
	must(t, h.Release())
}

// read returns a copy of the data.
func read(t testing.TB, r Resource) []byte {
	t.Helper()
	var h Handle
	must(t, h.ReadRequest(r))
	must(t, h.Acquire(background))
	b, err := h.ReadMap()
	must(t, err)
	b = bytes.Clone(b)
	must(t, h.Release())
	return b
}

func overEach(t *testing.T, f func(t *testing.T, network string, options []Option)) {
	for name, options := range map[string][]Option{"tcp": nil, "unix": nil, "shared": {Shared()}} {
		network := name
		if name == "shared" {
			network = "unix"
		}
		t.Run(name, func(t *testing.T) { f(t, network, options) })
	}
}

// waitFor polls for something that another goroutine is about to do.
func waitFor(t testing.TB, f func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("it does not happen")
		}
	}
}

func resize(t testing.TB, r Resource, size int) {
	t.Helper()
	var h Handle
	must(t, errors.Join(h.WriteRequest(r), h.Acquire(background), h.Resize(size), h.Release()))
}
