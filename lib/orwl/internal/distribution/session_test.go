package distribution

import (
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"fairway/lib/orwl/internal/transport"
)

// What no honest process asks ends the connection.
func TestReservationsThatCannotBe(t *testing.T) {
	for what, err := range map[string]error{
		"within another": (&Session{gathering: &gathered{id: 1}}).reserve(
			&transport.Frame{ID: 2, Requests: make([]transport.Posting, 1)}),
		"of nothing": new(Session).reserve(&transport.Frame{ID: 2}),
	} {
		if !errors.Is(err, transport.ErrMalformed) {
			t.Errorf("a reservation %s: %v", what, err)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	for err, want := range map[error]bool{
		os.NewSyscallError("connect", syscall.ECONNREFUSED): true, os.NewSyscallError("connect", syscall.EACCES): false,
		io.EOF: true, io.ErrUnexpectedEOF: true, os.ErrDeadlineExceeded: true, ErrInsecure: false, fs.ErrPermission: false,
	} {
		if absent(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

func TestWhyAServerHangsUp(t *testing.T) {
	secure, plain := &Dialing{TLS: new(tls.Config)}, new(Dialing)
	for want, got := range map[string]error{
		"or expect TLS (Dialer.TLS)": plain.explain(io.EOF), "or speak no TLS": secure.explain(io.EOF),
		"set Dialer.TLS": plain.explain(transport.ErrWantsTLS),
	} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("got %v, want %q", got, want)
		}
	}
	if err := plain.explain(net.ErrClosed); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// bare is a location of which nothing is asked but a request.
type bare struct{ Location }

func (bare) Refuse(err error) error         { return err }
func (bare) Request(string, func()) Request { return nil }

// Requests of another process are refused that are of nothing or too many.
func TestRequestsOfOthersAreBounded(t *testing.T) {
	s := &Session{
		limits: Limits{Requests: 1}, link: new(transport.Link), proxies: map[uint64]*proxy{},
		subscribed: map[uint64]*subscription{7: {id: 7, location: bare{}}},
	}
	if _, err := s.newProxy(transport.Posting{ID: 1, Mirror: 8}); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	p, err := s.newProxy(transport.Posting{ID: 1, Mirror: 7, Task: "a"})
	if err != nil || p.task != "a" {
		t.Fatal(p, err)
	}
	s.proxies[1] = p
	if _, err := s.newProxy(transport.Posting{ID: 2, Mirror: 7}); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	s.limits.Requests = 2
	if _, err := s.newProxy(transport.Posting{ID: 1, Mirror: 7}); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
}
