package orwl

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"fairway/lib/orwl/internal/distribution"
	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
)

// sessionsOf returns what other processes have at a server.
func sessionsOf(s *Server) (all []*distribution.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		all = append(all, p.session)
	}
	return all
}

func onlyPeer(t testing.TB, s *Server) *Peer {
	t.Helper()
	session := onlySession(t, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		if p.session == session {
			return p
		}
	}
	t.Fatal("the peer is gone")
	return nil
}

// onlySession waits for that of the only connection.
func onlySession(t testing.TB, s *Server) *distribution.Session {
	t.Helper()
	waitFor(t, func() bool { return len(sessionsOf(s)) == 1 })
	return sessionsOf(s)[0]
}

// Answers that a peer asks for and does not read are bounded; none is lost when it reads
// them in the end.
func TestAnswersNobodyReadsAreBounded(t *testing.T) {
	const asked = 2 * MaxUnread / MaxText
	s := new(Server)
	h := hostilePeer(t, s, "tcp")
	link := onlyPeer(t, s).link
	written := make(chan error, 1)
	go func() {
		name := strings.Repeat("n", MaxText)
		for id := range uint64(asked) {
			if _, err := h.conn.Write(
				transport.AppendFrame(nil, &transport.Frame{Kind: transport.Open, ID: id + 1, Text: name}),
			); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	waitFor(t, func() bool { return link.Unread() > MaxUnread })
	most := 0
	for answers := 0; answers < asked; {
		if f := h.next(t); f.Kind == transport.Opened {
			answers++
		}
		most = max(most, link.Unread())
	}
	must(t, <-written)
	if most > MaxUnread+2*MaxText {
		t.Fatalf("%d bytes were unread", most)
	}
}

// Data of grants that a peer does not read is not copied beyond a bound, however many
// locations are granted.
func TestGrantsNobodyReadsHoldNoCopies(t *testing.T) {
	const many = 16 * transport.MaxCopied / transport.InlineLimit
	s := new(Server)
	for i := range many {
		s.Add(newLocation(t, fmt.Sprint(i), transport.InlineLimit))
	}
	h := hostilePeer(t, s, "tcp")
	link := onlyPeer(t, s).link
	for i := range uint64(many) {
		h.send(t, &transport.Frame{Kind: transport.Open, ID: i + 1, Text: fmt.Sprint(i)},
			&transport.Frame{Kind: transport.Request, ID: many + i + 1, Mirror: i + 1})
	}
	waitFor(t, func() bool { return link.Unread() > transport.MaxCopied/2 })
	for i := range uint64(many) {
		h.expect(t, many+i+1, transport.Granted)
		if copied := link.Unread(); copied > transport.MaxCopied+many*64+transport.InlineLimit {
			t.Fatalf("%d bytes are copied", copied)
		}
	}
	h.conn.Close()
	for i := range many {
		l, err := s.location(fmt.Sprint(i))
		must(t, err)
		write(t, l, func([]byte) {})
	}
}

// Mirrors beyond the limit are refused, and one number is one mirror.
func TestMirrorsAreBounded(t *testing.T) {
	s := &Server{MaxMirrors: 2}
	for i := range 3 {
		s.Add(newLocation(t, fmt.Sprint(i), 8))
	}
	p := dialled(t, s, listen(t, "tcp"), new(Dialer))
	mirror(t, p, "0")
	mirror(t, p, "1")
	if _, err := p.Mirror(background, "2"); !errors.Is(err, ErrTooManyMirrors) {
		t.Fatal(err)
	}
	mirror(t, p, "1")
	h := hostilePeer(t, s, "tcp")
	h.send(t, &transport.Frame{Kind: transport.Open, ID: 1, Text: "0"}, &transport.Frame{
		Kind: transport.Open, ID: 1, Text: "1",
	})
	if f := h.expect(t, 1, transport.Opened); f.Code != 0 {
		t.Fatal(distribution.Refusal(&f))
	}
	if f := h.expect(t, 1, transport.Opened); !errors.Is(distribution.Refusal(&f), ErrBusy) {
		t.Fatal(distribution.Refusal(&f))
	}
}

// A peer that releases a write before it has read what came with the grant changes the
// memory when that has left, and not while it is sent.
func TestReleaseBeforeTheDataWasRead(t *testing.T) {
	cert, _ := certificate(t)
	for name, options := range map[string][]Option{"heap": nil, "file": sharedWhereThereIs()} {
		t.Run(name, func(t *testing.T) {
			l := newLocation(t, "l", 32<<20, options...)
			s := &Server{Lease: time.Minute}
			s.Add(l)
			listener := listen(t, "tcp")
			go s.ServeTLS(listener, &tls.Config{Certificates: []tls.Certificate{cert}})
			t.Cleanup(s.Close)
			conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
			must(t, err)
			h := hostileOver(t, conn, false)
			h.send(t, &transport.Frame{Kind: transport.Open, ID: 1, Text: "l"},
				&transport.Frame{Kind: transport.Request, ID: 2, Mirror: 1, Mode: Write})
			var f transport.Frame
			for f.Kind != transport.Granted {
				must(t, h.in.Next(&f))
			}
			h.send(t, &transport.Frame{Kind: transport.Release, ID: 2, Generation: f.Generation, OK: true, Size: 8,
				Extents: []memory.Extent{{Offset: 0, Length: 8}}})
			must(t, h.drop(&f))
			waitFor(t, func() bool { return l.Waiting() == 0 })
			if n := len(read(t, l)); n != 8 {
				t.Fatalf("%d bytes", n)
			}
		})
	}
}

// A peer that releases a write before it has read what came with the grant, and then neither
// reads nor says anything, is lost after a lease: the location is free.
func TestReleaseBeforeTheDataWasReadBySomebodySilent(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			l := newLocation(t, "l", 32<<20)
			s := new(Server)
			s.Add(l)
			t.Cleanup(s.Close)
			listener := listen(t, network)
			conn, err := net.Dial(network, listener.Addr().String())
			must(t, err)
			defer conn.Close()
			var b []byte
			for _, f := range []*transport.Frame{
				{Kind: transport.Greeting, Version: transport.Version, Text: "hostile", Size: int64(MinLease)},
				{Kind: transport.Open, ID: 1, Text: "l"},
				{Kind: transport.Request, ID: 2, Mirror: 1, Mode: Write},
				{Kind: transport.Release, ID: 2, Generation: 1}, // that of the first grant
			} {
				b = transport.AppendFrame(b, f)
			}
			_, err = conn.Write(b)
			must(t, err)
			go s.Serve(listener)
			h := &hostile{conn, transport.Reader{Limit: MaxHeader, In: bufio.NewReader(conn)}}
			h.next(t) // the greeting, and nothing after it
			ctx, cancel := context.WithTimeout(background, time.Minute)
			defer cancel()
			must(t, s.Shutdown(ctx))
			if n := l.generation; n != 1 {
				t.Fatalf("%d grants were given", n)
			}
			write(t, l, func([]byte) {})
		})
	}
}

// A peer that takes back one request of a reservation before it has settled it leaves
// nothing behind when it goes.
func TestCancelBeforeTheReservationIsSettled(t *testing.T) {
	l := newLocation(t, "l", 8)
	s := new(Server)
	s.Add(l)
	h := hostilePeer(t, s, "tcp")
	var spanning Handle
	latched, err := localOwner{}.reserve(background, []Posting{spanning.Writing(l)})
	must(t, err)
	h.send(t, &transport.Frame{Kind: transport.Open, ID: 1, Text: "l"},
		&transport.Frame{
			Kind: transport.Reserve, ID: 2, OK: true, Requests: []transport.Posting{{ID: 3, Mirror: 1, Mode: Write}},
		},
		&transport.Frame{Kind: transport.Cancel, ID: 3}, &transport.Frame{Kind: transport.Sync, ID: 4})
	h.expect(t, 4, transport.Answered)
	latched.settle(true)
	must(t, errors.Join(spanning.Acquire(background), spanning.Release()))
	h.expect(t, 2, transport.Answered)
	h.send(t, &transport.Frame{Kind: transport.Settle, ID: 2, OK: true}, &transport.Frame{Kind: transport.Sync, ID: 5})
	h.expect(t, 5, transport.Answered)
	h.conn.Close()
	write(t, l, func([]byte) {})
}
