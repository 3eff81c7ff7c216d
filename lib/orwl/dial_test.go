//go:build unix

package orwl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"fairway/lib/orwl/internal/transport"
)

// silent listens, accepts, and never says a word.
func silent(t *testing.T, network string) net.Listener {
	t.Helper()
	l := listen(t, network)
	t.Cleanup(func() { l.Close() })
	return l
}

// A server that accepts and stays silent does not keep Dial from ending with its context.
func TestDialEndsWithItsContext(t *testing.T) {
	l := silent(t, "tcp")
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			accepted <- conn
		}
	}()
	ctx, cancel := context.WithCancel(background)
	end := make(chan error, 1)
	go func() {
		_, err := (&Dialer{Lease: time.Hour}).Dial(ctx, "tcp", l.Addr().String())
		end <- err
	}()
	defer (<-accepted).Close()
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// A peer whose owner is away, and in whose place somebody accepts and stays silent,
// closes at once.
func TestCloseWhileDiallingAgain(t *testing.T) {
	listener := listen(t, "tcp")
	address := listener.Addr().String()
	s := new(Server)
	p := dialled(t, s, listener, &Dialer{Lease: time.Hour})
	s.Close()
	l, err := net.Listen("tcp", address)
	must(t, err)
	defer l.Close()
	conn, err := l.Accept() // it dials again
	must(t, err)
	defer conn.Close()
	must(t, p.Close())
}

// Close of a server does not wait for connections that have not said who they are.
func TestServerClosesWithSilentConnections(t *testing.T) {
	s := &Server{Lease: time.Hour}
	l := listen(t, "tcp")
	go s.Serve(l)
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1)) // it is served
	must(t, err)
	s.Close()
}

const fewDescriptors = 40

// childServesFew serves with few descriptors.
func childServesFew([]string) error {
	l, err := New("l", 8)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: fewDescriptors, Max: fewDescriptors}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	s := &Server{Lease: time.Hour}
	s.Add(l)
	fmt.Println(listener.Addr())
	go func() {
		bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}()
	return s.Serve(listener)
}

// A server that has no descriptors left goes on when there are some again.
func TestServesAfterDescriptorsRanOut(t *testing.T) {
	address := startChild(t, "few").line(t)
	var all []net.Conn
	for range 2 * fewDescriptors {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		all = append(all, conn)
	}
	// The first connections are served, until there are no descriptors.
	for _, conn := range all[:fewDescriptors/4] {
		_, err := conn.Read(make([]byte, 1))
		must(t, err)
	}
	for _, conn := range all {
		conn.Close()
	}
	waitFor(t, func() bool {
		p, err := (&Dialer{Patience: time.Hour}).Dial(background, "tcp", address)
		must(t, err)
		defer p.Close()
		m, err := p.Mirror(background, "l") // it may lack descriptors yet for what comes after the hello
		if err == nil {
			write(t, m, func(b []byte) { b[0] = 1 })
		}
		return err == nil
	})
}

// Connections beyond the limit are refused, and those before are served.
func TestConnectionsAreBounded(t *testing.T) {
	l := newLocation(t, "l", 8)
	s := &Server{MaxConnections: 2}
	s.Add(l)
	listener := listen(t, "tcp")
	p := dialled(t, s, listener, new(Dialer))
	conn, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	_, err = conn.Read(make([]byte, 1))
	must(t, err)
	if _, err := Dial(background, "tcp", listener.Addr().String()); err == nil {
		t.Fatal("a third connection was served")
	}
	write(t, mirror(t, p, "l"), func(b []byte) { b[0] = 1 })
	conn.Close()
	waitFor(t, func() bool {
		q, err := Dial(background, "tcp", listener.Addr().String())
		if err == nil {
			q.Close()
		}
		return err == nil
	})
}

// Dial waits for a server that has yet to start, as long as it may.
func TestDialWaitsForTheServer(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		listener := listen(t, network)
		address := listener.Addr().String()
		must(t, listener.Close())
		if _, err := Dial(background, network, address); err == nil {
			t.Fatal("somebody answers")
		}
		type result struct {
			p   *Peer
			err error
		}
		end := make(chan result, 1)
		tried := make(chan struct{}, 1000)
		d := Dialer{Patience: time.Hour, failed: func(error) { tried <- struct{}{} }}
		go func() {
			p, err := d.Dial(background, network, address)
			end <- result{p, err}
		}()
		<-tried
		<-tried
		l, err := net.Listen(network, address)
		must(t, err)
		s := new(Server)
		go s.Serve(l)
		defer s.Close()
		r := <-end
		must(t, r.err)
		must(t, r.p.Close())
	}
}

// What trying again cannot mend ends Dial at once, whatever its patience.
func TestDialDoesNotWaitInVain(t *testing.T) {
	l := silent(t, "tcp")
	go func() {
		conn, err := l.Accept()
		if err == nil {
			conn.Write(transport.AppendFrame(nil, &transport.Frame{Kind: transport.Ping}))
			conn.Read(make([]byte, 1))
			conn.Close()
		}
	}()
	d := Dialer{Patience: time.Hour}
	if _, err := d.Dial(background, "tcp", l.Addr().String()); !errors.Is(err, transport.ErrMalformed) {
		t.Fatal(err)
	}
	if _, err := d.Dial(background, "nonsense", "x"); err == nil {
		t.Fatal("there is no such network")
	}
}
