//go:build unix

package orwl

import (
	"errors"
	"net"
	"sync"
	"testing"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
)

// script turns bytes into frames whose numbers are small, so that they meet each other.
type script []byte

func (s *script) next() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

// frame makes one that an end may send after its hello, with the numbers that a session
// looks at. A generation is what the frame before told for the request, or one that is wrong.
func (s *script) frame(
	kinds byte, first transport.Kind, names []string, generations map[uint64]uint64,
) *transport.Frame {
	kind := first + transport.Kind(s.next()%kinds)
	bits, ids, size := s.next(), s.next(), s.next()
	f := &transport.Frame{
		Kind: kind, OK: bits&1 != 0, Mode: Mode(bits >> 1 & 1), ID: uint64(ids & 7), Mirror: uint64(ids >> 3 & 7),
		Next: uint64(bits >> 2 & 7), Size: int64(size) * 64, Rank: int64(int8(size)),
	}
	f.Generation = generations[f.ID]
	switch {
	case kind == transport.Open:
		f.Text = names[int(size)%len(names)]
	case kind == transport.Reserve:
		for n := uint64(0); n < uint64(bits>>5); n++ {
			f.Requests = append(f.Requests, transport.Posting{ID: f.ID + n, Mirror: f.Mirror, Mode: f.Mode, Rank: f.Rank})
		}
	case bits>>5 == 7:
		f.Generation++
	}
	if bits&0x10 != 0 && f.Size > 0 {
		f.Extents = []memory.Extent{{Offset: int(f.Size) / 2, Length: int(f.Size) / 2}}
	}
	return f
}

// FuzzSession has a peer send any frames in any order. Whatever it does, the server stays
// alive, and when the peer goes nothing of it is left.
func FuzzSession(f *testing.F) {
	const open, request, cancel, release, reserve, settle, sync = 0, 1, 2, 3, 4, 5, 6
	f.Add([]byte{open, 0, 1, 0, request, 2, 0x0a, 0, sync, 0, 0, 0, release, 1, 2, 3, sync, 0, 0, 0})
	f.Add([]byte{open, 2, 1, 2, reserve, 0x23, 0x0a, 0, sync, 0, 0, 0, cancel, 0, 2, 0, settle, 1, 2, 0, sync, 0, 0, 0})
	f.Add([]byte{open, 2, 1, 1, reserve, 0x22, 0x0a, 0, reserve, 0x23, 0x0a, 0, settle, 0, 2, 0, sync, 0, 0, 0})
	f.Add([]byte{open, 3, 1, 3, open, 3, 2, 3, request, 2, 0x0b, 0, sync, 0, 0, 0, release, 0x11, 3, 9, sync, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := new(Server)
		defer s.Close()
		locations := []*Location{newLocation(t, "a", 8), newLocation(t, "b", 3*memory.BlockSize),
			newLocation(t, "starts", 8, StartWith(2)), newLocation(t, "shared", memory.BlockSize, sharedWhereThereIs()...)}
		s.Add(locations...)
		h := hostilePeer(t, s, "unix")
		h.plays(script(b), locations)
		h.conn.Close()
		for _, l := range []*Location{locations[0], locations[1], locations[3]} {
			write(t, l, func(b []byte) { clear(b) })
		}
		waitFor(t, func() bool { return len(sessionsOf(s)) == 0 })
		startsOrMisses(t, locations[2])
		for _, l := range locations {
			if n := l.Waiting(); n != 0 {
				t.Fatalf("%d requests are left at %s", n, l.name)
			}
		}
	})
}

// startsOrMisses makes the two requests that a location starts with. They are granted, or both
// are refused because a task was lost before the start.
func startsOrMisses(t *testing.T, l *Location) {
	var a, b Handle
	for _, err := range []error{a.ReadRequest(l), b.ReadRequest(l)} {
		if err != nil && !errors.Is(err, ErrAbsentTask) {
			t.Fatal(err)
		}
	}
	if hs := (Handles{&a, &b}); a.busy() && !granted(t, hs) {
		t.Fatal("the location does not start")
	} else if err := hs.Cancel(); err != nil {
		t.Fatal(err)
	}
}

// plays sends what a script says until the other end has enough of it.
func (h *hostile) plays(s script, locations []*Location) {
	names := []string{"nothing"}
	for _, l := range locations {
		names = append(names, l.name)
	}
	generations := make(map[uint64]uint64)
	for len(s) > 0 {
		f := s.frame(byte(transport.Sync), transport.Open, names[1:], generations)
		if _, err := h.conn.Write(append(transport.AppendFrame(nil, f), make([]byte, f.DataLength())...)); err != nil {
			return
		}
		for f.Kind == transport.Sync {
			var got transport.Frame
			if h.in.Next(&got) != nil || h.drop(&got) != nil {
				return
			}
			if got.Kind == transport.Granted {
				generations[got.ID] = got.Generation
			}
			if got.Kind == transport.Answered && got.ID == f.ID {
				break
			}
		}
	}
}

// FuzzPeer has an owner answer with any frames in any order. Whatever it does, the process
// that dialled it stays alive, and all that waits there ends.
func FuzzPeer(f *testing.F) {
	const opened, granted, refused, answered = 0, 1, 2, 3
	f.Add([]byte{opened, 0, 1, 1, granted, 0, 0x0a, 1, granted, 0, 0x0b, 2, refused, 0, 3, 0})
	f.Add([]byte{opened, 1, 1, 1, granted, 1, 0x0a, 1, opened, 0, 1, 1, answered, 1, 2, 0})
	f.Add([]byte{opened, 0, 1, 1, granted, 0x10, 0x0a, 9, granted, 0x10, 0x0b, 5, granted, 0, 0x0c, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		listener := listen(t, "unix")
		defer listener.Close()
		owner := make(chan *hostile, 1)
		go func() {
			conn, err := listener.Accept()
			if err == nil {
				owner <- hostileOver(t, conn, true)
			}
		}()
		p, err := (&Dialer{Once: true, MaxSize: 1 << 20}).Dial(background, "unix", listener.Addr().String())
		must(t, err)
		var tasks sync.WaitGroup
		tasks.Go(func() { useAnyhow(p) })
		h := <-owner
		for s := script(b); len(s) > 0; {
			f := s.frame(4, transport.Opened, nil, nil)
			if _, err := h.conn.Write(append(transport.AppendFrame(nil, f), make([]byte, f.DataLength())...)); err != nil {
				break
			}
		}
		h.conn.Close()
		tasks.Wait()
		p.Close()
	})
}

// useAnyhow requests and touches a location until the connection ends.
func useAnyhow(p *Peer) {
	m, err := p.Mirror(background, "l")
	if err != nil {
		return
	}
	for i := 0; ; i++ {
		var h, g Handle
		first, second := h.insertAt(m, Mode(i&1)), g.insertAt(m, Read)
		if first == nil && h.Acquire(background) == nil {
			if b, err := h.view(h.mode); err == nil && len(b) > 0 {
				if h.mode == Write {
					b[len(b)-1]++
				}
				_ = string(b)
			}
			h.Release()
		}
		if second == nil && g.Acquire(background) == nil {
			g.Release()
		}
		if first != nil || second != nil {
			return
		}
	}
}

func (h *Handle) insertAt(r Resource, m Mode) error { return h.request(r, m) }

// FuzzHello has somebody connect and send any bytes. The server goes on, and keeps no
// connection of it.
func FuzzHello(f *testing.F) {
	hello := transport.AppendFrame(nil, &transport.Frame{
		Kind: transport.Greeting, Version: transport.Version, Text: "somebody", Size: 1,
	})
	f.Add(hello)
	f.Add(append(hello, transport.AppendFrame(nil, &transport.Frame{Kind: transport.Open, ID: 1, Text: "l"})...))
	f.Add(hello[:9])
	l := newLocation(f, "l", 8)
	s, p := served(f, "unix", l)
	m := mirror(f, p, "l")
	address := listenerOf(s).Addr().String()
	f.Fuzz(func(t *testing.T, b []byte) {
		conn, err := net.Dial("unix", address)
		must(t, err)
		conn.Write(b)
		must(t, conn.Close())
		waitFor(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.connections == 1
		})
		write(t, m, func(b []byte) { b[0]++ })
	})
}
