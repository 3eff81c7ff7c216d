package distribution

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"fairway/lib/orwl/internal/transport"
)

// FirstPause is the longest pause before a connection is made again for the
// first time. Each further one may be twice as long, up to a quarter of the lease.
// The pauses are random, so that those who lost the same owner don't come together.
const FirstPause = 20 * time.Millisecond

// LongestPause bounds the pauses of those who wait for something to begin: Dial with
// patience, and a server that has no descriptors.
const LongestPause = time.Second

// Dialing is how a server is reached.
type Dialing struct {
	Network, Address string
	Hello            transport.Hello
	TLS              *tls.Config // nil for connections within this machine
	Patience         time.Duration
	Failed           func(error) // hears of each attempt of Patiently that failed, unless it is nil
}

// Patiently connects until somebody answers or the patience is at its end.
func (d *Dialing) Patiently(ctx context.Context) (*transport.Link, error) {
	if d.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Patience)
		defer cancel()
	}
	for pause := FirstPause; ; pause = min(2*pause, LongestPause) {
		l, err := d.Connect(ctx)
		if err == nil || d.Patience <= 0 || !absent(err) {
			return l, err
		}
		if d.Failed != nil {
			d.Failed(err)
		}
		if Nap(ctx, rand.N(pause)) != nil {
			return nil, fmt.Errorf("nobody answered in time: %w", err)
		}
	}
}

// absent reports whether an error says that nobody answers, and not who answers.
func absent(err error) bool {
	var system *os.SyscallError
	return errors.As(err, &system) && !errors.Is(err, fs.ErrPermission) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded)
}

// Connect tries once.
func (d *Dialing) Connect(ctx context.Context) (*transport.Link, error) {
	dialer := net.Dialer{Timeout: d.Hello.Lease}
	conn, err := dialer.DialContext(ctx, d.Network, d.Address)
	if err != nil {
		return nil, err
	}
	if d.TLS != nil {
		conn = tls.Client(conn, d.config())
	} else if !transport.OnThisMachine(conn.RemoteAddr()) {
		conn.Close()
		return nil, fmt.Errorf("dialling %s: %w", d.Address, ErrInsecure)
	}
	l, err := transport.Connect(ctx, conn, d.Hello)
	if err != nil {
		return nil, fmt.Errorf("dialling %s: %w", d.Address, d.explain(err))
	}
	return l, nil
}

// explain says what else may be wrong when a server does not say hello.
func (d *Dialing) explain(err error) error {
	switch {
	case errors.Is(err, transport.ErrWantsTLS):
		return fmt.Errorf("%w: set Dialer.TLS", err)
	case !errors.Is(err, io.EOF):
		return err
	case d.TLS != nil:
		return fmt.Errorf("%w: the server hung up; it may have no more room (Server.MaxConnections), or speak no TLS", err)
	}
	return fmt.Errorf("%w: the server hung up; it may have no more room (Server.MaxConnections), or expect TLS "+
		"(Dialer.TLS)", err)
}

// config says whose certificate is expected at the address.
func (d *Dialing) config() *tls.Config {
	if d.TLS.ServerName != "" || d.TLS.InsecureSkipVerify {
		return d.TLS
	}
	c := d.TLS.Clone()
	if host, _, err := net.SplitHostPort(d.Address); err == nil {
		c.ServerName = host
	}
	return c
}

// Reconnect dials until there is a connection to the process of the one that was lost, or a lease has
// passed.
func Reconnect(
	ctx context.Context, lost *transport.Link, dial func(context.Context) (*transport.Link, error),
) (*transport.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, lost.Lease)
	defer cancel()
	for pause := FirstPause; ; pause = min(2*pause, lost.Lease/4) {
		if err := Nap(ctx, rand.N(pause)); err != nil {
			return nil, fmt.Errorf("no connection within the lease of %v: %w", lost.Lease, ErrLeaseLost)
		}
		l, err := dial(ctx)
		if err != nil {
			continue
		}
		if l.Process == lost.Process {
			return l, nil
		}
		l.Cut()
		return nil, fmt.Errorf("another process answers, so what this one had is gone: %w", ErrLeaseLost)
	}
}

// Nap waits so long, or until ctx ends, which is an error.
func Nap(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
