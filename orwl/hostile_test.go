package orwl

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// hostile is an end of a connection that sends what it likes, and reads only when it is
// told to.
type hostile struct{ *link }

// hostilePeer connects to a server, which begins to serve, and exchanges hellos.
func hostilePeer(t testing.TB, s *Server, network string) hostile {
	t.Helper()
	listener := listen(t, network)
	go s.Serve(listener)
	t.Cleanup(s.Close)
	return hostileDial(t, listener.Addr())
}

func hostileDial(t testing.TB, address net.Addr) hostile {
	t.Helper()
	conn, err := net.Dial(address.Network(), address.String())
	must(t, err)
	return hostileOver(t, conn)
}

func hostileOver(t testing.TB, conn net.Conn) hostile {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	l, err := newLink(background, conn, nil, time.Minute)
	must(t, err)
	t.Cleanup(func() {
		l.tick.close()
		l.reading.back.close()
		l.fds.close()
	})
	return hostile{l}
}

// send sends frames with their data, which is all zero.
func (h hostile) send(t testing.TB, frames ...*frame) {
	t.Helper()
	for _, f := range frames {
		_, err := h.conn.Write(append(appendFrame(nil, f), make([]byte, f.dataLength())...))
		must(t, err)
	}
}

// expect reads until there is a frame of a kind for an id.
func (h hostile) expect(t testing.TB, id uint64, kind frameKind) frame {
	t.Helper()
	for {
		f := h.next(t)
		if f.kind == kind && f.id == id {
			return f
		}
	}
}

// next reads one frame and its data.
func (h hostile) next(t testing.TB) (f frame) {
	t.Helper()
	must(t, h.in.next(&f))
	must(t, h.drop(&f))
	return f
}

// ends waits until the other end has closed the connection.
func (h hostile) ends(t testing.TB) {
	t.Helper()
	must(t, h.conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.Copy(io.Discard, h.in.in)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}
