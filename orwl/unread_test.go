package orwl

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	"fairway/orwl/internal/memory"
)

// sessionsOf returns what other processes have at a server.
func sessionsOf(s *Server) (all []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links {
		all = append(all, l.session)
	}
	return all
}

// onlySession waits for that of the only connection.
func onlySession(t testing.TB, s *Server) *session {
	t.Helper()
	waitFor(t, func() bool { return len(sessionsOf(s)) == 1 })
	return sessionsOf(s)[0]
}

func (o *outbox) weight() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.unread
}

// Answers that a peer asks for and does not read are bounded; none is lost when it reads
// them in the end.
func TestAnswersNobodyReadsAreBounded(t *testing.T) {
	const asked = 2 * MaxUnread / MaxText
	s := new(Server)
	h := hostilePeer(t, s, "tcp")
	out := onlySession(t, s).link.out
	written := make(chan error, 1)
	go func() {
		name := strings.Repeat("n", MaxText)
		for id := range uint64(asked) {
			if _, err := h.conn.Write(appendFrame(nil, &frame{kind: frameOpen, id: id + 1, text: name})); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	waitFor(t, func() bool { return out.weight() > MaxUnread })
	most := 0
	for answers := 0; answers < asked; {
		if f := h.next(t); f.kind == frameOpened {
			answers++
		}
		most = max(most, out.weight())
	}
	must(t, <-written)
	if most > MaxUnread+2*MaxText {
		t.Fatalf("%d bytes were unread", most)
	}
}

// Data of grants that a peer does not read is not copied beyond a bound, however many
// locations are granted.
func TestGrantsNobodyReadsHoldNoCopies(t *testing.T) {
	const many = 16 * maxCopied / inlineLimit
	s := new(Server)
	for i := range many {
		s.Add(newLocation(t, fmt.Sprint(i), inlineLimit))
	}
	h := hostilePeer(t, s, "tcp")
	out := onlySession(t, s).link.out
	for i := range uint64(many) {
		h.send(t, &frame{kind: frameOpen, id: i + 1, text: fmt.Sprint(i)}, &frame{kind: frameRequest, id: many + i + 1, mirror: i + 1})
	}
	waitFor(t, func() bool { return out.weight() > maxCopied/2 })
	for i := range uint64(many) {
		h.expect(t, many+i+1, frameGranted)
		if copied := out.weight(); copied > maxCopied+many*64+inlineLimit {
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
	h.send(t, &frame{kind: frameOpen, id: 1, text: "0"}, &frame{kind: frameOpen, id: 1, text: "1"})
	if f := h.expect(t, 1, frameOpened); f.code != 0 {
		t.Fatal(f.error())
	}
	if f := h.expect(t, 1, frameOpened); !errors.Is(f.error(), ErrBusy) {
		t.Fatal(f.error())
	}
}

// A peer that releases a write before it has read what came with the grant changes the
// memory when that has left, and not while it is sent.
func TestReleaseBeforeTheDataWasRead(t *testing.T) {
	cert, _ := certificate(t)
	for name, options := range map[string][]Option{"heap": nil, "file": sharedWhereThereIs()} {
		t.Run(name, func(t *testing.T) {
			l := newLocation(t, "l", 32<<20, options...)
			s := new(Server)
			s.Add(l)
			listener := listen(t, "tcp")
			go s.ServeTLS(listener, &tls.Config{Certificates: []tls.Certificate{cert}})
			t.Cleanup(s.Close)
			conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
			must(t, err)
			h := hostileOver(t, conn)
			h.send(t, &frame{kind: frameOpen, id: 1, text: "l"}, &frame{kind: frameRequest, id: 2, mirror: 1, mode: Write})
			var f frame
			for f.kind != frameGranted {
				must(t, h.in.next(&f))
			}
			h.send(t, &frame{kind: frameRelease, id: 2, generation: f.generation, ok: true, size: 8, extents: []memory.Extent{{Offset: 0, Length: 8}}})
			must(t, h.drop(&f))
			waitFor(t, func() bool { return l.Waiting() == 0 })
			if n := len(read(t, l)); n != 8 {
				t.Fatalf("%d bytes", n)
			}
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
	h.send(t, &frame{kind: frameOpen, id: 1, text: "l"},
		&frame{kind: frameReserve, id: 2, ok: true, requests: []wireRequest{{id: 3, mirror: 1, mode: Write}}},
		&frame{kind: frameCancel, id: 3}, &frame{kind: frameSync, id: 4})
	h.expect(t, 4, frameAnswered)
	latched.settle(true)
	must(t, errors.Join(spanning.Acquire(background), spanning.Release()))
	h.expect(t, 2, frameAnswered)
	h.send(t, &frame{kind: frameSettle, id: 2, ok: true}, &frame{kind: frameSync, id: 5})
	h.expect(t, 5, frameAnswered)
	h.conn.Close()
	write(t, l, func([]byte) {})
}
