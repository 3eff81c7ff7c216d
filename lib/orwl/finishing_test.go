//go:build unix

package orwl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
)

// childWorks serves a location by the connection that it dials, says who it is by a
// location of the other process, and ends when everything it wrote has arrived.
func childWorks(args []string) error {
	own, err := New("own", 8)
	if err != nil {
		return err
	}
	s := new(Server)
	s.Add(own)
	p, m, err := childMirror(&Dialer{Serve: s}, args)
	if err != nil {
		return err
	}
	var named, done Handle
	if err := errors.Join(named.WriteRequest(m), named.Acquire(background), named.Resize(len(ProcessName()))); err != nil {
		return err
	}
	b, err := named.WriteMap()
	if err != nil {
		return err
	}
	copy(b, ProcessName())
	if err := named.Release(); err != nil {
		return err
	}
	if err := p.Sync(background); err != nil {
		return err
	}
	fmt.Println("told")
	bufio.NewReader(os.Stdin).ReadString('\n')
	if err := errors.Join(done.WriteRequest(m), done.Acquire(background)); err != nil {
		return err
	}
	if b, err = done.WriteMap(); err != nil {
		return err
	}
	b[0] = 'x'
	return errors.Join(done.Release(), p.Close())
}

// A process learns its own name, tells it, and is found by it over the connection that it
// dialled. What it released before its end has arrived, and the server ends when it has
// finished.
func TestProcessesFindEachOtherAndFinish(t *testing.T) {
	l := newLocation(t, "l", 0)
	s := new(Server)
	s.Add(l)
	listener := listen(t, "tcp")
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	c := startChild(t, "work", "tcp", listener.Addr().String())
	c.line(t)
	var h Handle
	must(t, errors.Join(h.ReadRequest(l), h.Acquire(background)))
	b, err := h.ReadMap()
	must(t, err)
	name := string(b)
	p, err := s.Peer(background, name)
	must(t, err)
	if p.Name() != name || name == ProcessName() {
		t.Fatalf("process %s is %s", name, p.Name())
	}
	write(t, mirror(t, p, "own"), func(b []byte) { b[0] = 1 })
	must(t, p.Sync(background))
	must(t, h.Release())
	must(t, c.Tell("go on"))
	must(t, s.Shutdown(background))
	must(t, <-served)
	if b := read(t, l); string(b) != "x"+name[1:] {
		t.Fatalf("the last write is missing: %q", b)
	}
	if _, err := s.Peer(background, name); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

// A server waits for processes that have not finished as long as its context lasts.
func TestShutdownEndsWithItsContext(t *testing.T) {
	s, p := served(t, "tcp", newLocation(t, "l", 8))
	mirror(t, p, "l")
	ctx, cancel := context.WithCancel(background)
	end := make(chan error, 1)
	go func() { end <- s.Shutdown(ctx) }()
	mirror(t, p, "l") // it still serves
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// Waiting for a process that does not come ends with the context, and one that serves
// nothing is not found.
func TestPeerIsOneThatServes(t *testing.T) {
	s, p := served(t, "tcp", newLocation(t, "l", 8))
	mirror(t, p, "l")
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := s.Peer(ctx, ProcessName()); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	back := onlyPeer(t, s)
	if _, err := back.Mirror(background, "l"); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	write(t, mirror(t, p, "l"), func([]byte) {}) // the connection goes on
}

// A write that was released, and whose connection was lost before anybody said that it
// arrived, is in doubt: the next Sync says so, or Close.
func TestSyncTellsOfReleasesInDoubt(t *testing.T) {
	for name, ask := range map[string]func(p *Peer) error{
		"sync":  func(p *Peer) error { return p.Sync(background) },
		"close": (*Peer).Close,
	} {
		t.Run(name, func(t *testing.T) {
			_, p := served(t, "tcp", newLocation(t, "l", 8))
			m := mirror(t, p, "l")
			write(t, m, func([]byte) {})
			must(t, p.Sync(background))
			before := p.present()
			cut(p)
			waitFor(t, func() bool { return p.present() != before })
			must(t, p.Sync(background)) // nothing was released since
			write(t, m, func([]byte) {})
			before = p.present()
			cut(p)
			waitFor(t, func() bool { return p.present() != before })
			if err := ask(p); !errors.Is(err, ErrLeaseLost) {
				t.Fatal(err)
			}
			must(t, p.Close())
		})
	}
}

// Close does not wait longer than a lease for an owner that says nothing.
func TestCloseOfAPeerWhoseOwnerIsStopped(t *testing.T) {
	listener := listen(t, "tcp")
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			hostileOver(t, conn, true)
		}
	}()
	p, err := (&Dialer{Lease: DefaultLease / 20, Once: true}).Dial(background, "tcp", listener.Addr().String())
	must(t, err)
	p.mu.Lock()
	p.unsaid = true
	p.mu.Unlock()
	if err := p.Close(); err == nil {
		t.Fatal("nobody has said that the release arrived")
	}
}
