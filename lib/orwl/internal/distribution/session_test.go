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
