package orwl

import (
	"net"
	"sync/atomic"
	"testing"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/seed"
)

// One location serves goroutines, processes that map its memory and other hosts
// at once.
func TestMixedHistoryIsLinearizable(t *testing.T) {
	rng := seed.Source(t)
	for range rounds(5) {
		l := newLocation(t, "l", 2*memory.BlockSize, Shared())
		s, p := served(t, "unix", l)
		q := dialled(t, s, listen(t, "tcp"), new(Dialer))
		mapped, copied := mirror(t, p, "l"), mirror(t, q, "l")
		if mapped.replica.Draft == nil || copied.replica.Draft != nil {
			t.Fatal("not one mirror of each kind")
		}
		checkLinearizable(t, registerHistory(t, rng, []Resource{l, mapped, copied, l, mapped, copied}, 15))
	}
}

// A pair can be tested, mapped and resized wherever its location is.
func TestPairEverywhere(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		_, p := served(t, network, l)
		for _, r := range []Resource{l, mirror(t, p, "l")} {
			var pair Pair
			must(t, pair.WriteRequest(r))
			for grown := range 3 {
				waitFor(t, func() bool { return granted(t, &pair) })
				b, err := pair.ReadMap()
				must(t, err)
				if len(b) != 8+grown {
					t.Fatalf("%T: %d bytes after %d turns", r, len(b), grown)
				}
				must(t, pair.Resize(len(b)+1))
				b, err = pair.WriteMap()
				must(t, err)
				if b[len(b)-1] != 0 {
					t.Fatalf("%T: new memory is not zero", r)
				}
				b[len(b)-1] = 1
				must(t, pair.Release())
			}
			must(t, pair.Acquire(background))
			must(t, pair.Resize(8))
			must(t, pair.Finish())
		}
	})
}

// meteredListener counts the bytes that come by its connections.
type meteredListener struct {
	net.Listener
	bytes atomic.Int64
}

func (l *meteredListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return meteredConn{c, &l.bytes}, err
}

type meteredConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

// A writer on another host sends back the blocks that it changed, and no others.
func TestWritersSendWhatTheyChanged(t *testing.T) {
	l := newLocation(t, "l", 4*memory.BlockSize)
	meter := &meteredListener{Listener: listen(t, "tcp")}
	s := new(Server)
	s.Add(l)
	m := mirror(t, dialled(t, s, meter, new(Dialer)), "l")
	for turn := range 5 {
		before := meter.bytes.Load()
		write(t, m, func(b []byte) { b[0]++; b[2*memory.BlockSize]++ })
		waitFor(t, func() bool { return l.Version() == uint64(turn+1) })
		if got := read(t, l)[2*memory.BlockSize]; int(got) != turn+1 {
			t.Fatalf("turn %d: the owner has %d", turn, got)
		}
		if sent := meter.bytes.Load() - before; sent < 2*memory.BlockSize || sent > 3*memory.BlockSize {
			t.Fatalf("turn %d: two blocks changed, and %d bytes were sent", turn, sent)
		}
	}
}
