package orwl

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"fairway/lib/orwl/internal/transport"
)

// hostile is an end of a connection that sends what it likes, and reads only when it is
// told to.
type hostile struct {
	conn net.Conn
	in   transport.Reader
}

// hostilePeer connects to a server, which begins to serve, and exchanges hellos.
func hostilePeer(t testing.TB, s *Server, network string) *hostile {
	t.Helper()
	listener := listen(t, network)
	go s.Serve(listener)
	t.Cleanup(s.Close)
	return hostileDial(t, listener.Addr())
}

func hostileDial(t testing.TB, address net.Addr) *hostile {
	t.Helper()
	conn, err := net.Dial(address.Network(), address.String())
	must(t, err)
	return hostileOver(t, conn, false)
}

// hostileOver exchanges hellos over a connection; serves is what it says of itself.
func hostileOver(t testing.TB, conn net.Conn, serves bool) *hostile {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	h := &hostile{conn, transport.Reader{Limit: MaxHeader, In: bufio.NewReader(conn)}}
	h.send(t, &transport.Frame{
		Kind: transport.Greeting, Version: transport.Version, Text: "hostile", Size: int64(time.Minute), OK: serves,
	})
	h.next(t)
	return h
}

// send sends frames with their data, which is all zero.
func (h *hostile) send(t testing.TB, frames ...*transport.Frame) {
	t.Helper()
	for _, f := range frames {
		_, err := h.conn.Write(append(transport.AppendFrame(nil, f), make([]byte, f.DataLength())...))
		must(t, err)
	}
}

// expect reads until there is a frame of a kind for an id.
func (h *hostile) expect(t testing.TB, id uint64, kind transport.Kind) transport.Frame {
	t.Helper()
	for {
		f := h.next(t)
		if f.Kind == kind && f.ID == id {
			return f
		}
	}
}

// next reads one frame and its data.
func (h *hostile) next(t testing.TB) (f transport.Frame) {
	t.Helper()
	must(t, h.in.Next(&f))
	must(t, h.drop(&f))
	return f
}

// drop reads the data of a frame.
func (h *hostile) drop(f *transport.Frame) error {
	_, err := io.CopyN(io.Discard, h.in.In, int64(f.DataLength()))
	return err
}

// ends waits until the other end has closed the connection.
func (h *hostile) ends(t testing.TB) {
	t.Helper()
	must(t, h.conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.Copy(io.Discard, h.in.In)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}
