package orwl

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
	"fairway/lib/seed"
)

func TestRemoteData(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 100_000, options...)
		l.Initialize(func(b []byte) { copy(b, "initial") })
		_, p := served(t, network, l)
		m := mirror(t, p, "l")
		if got := read(t, m); string(got[:7]) != "initial" || len(got) != 100_000 {
			t.Fatalf("got %q of %d bytes", got[:7], len(got))
		}
		write(t, m, func(b []byte) { b[50_000] = 1 })
		write(t, l, func(b []byte) { b[99_999] = 2 })
		write(t, m, func(b []byte) { b[0] = 3 })
		for _, r := range []Resource{l, m} {
			if got := read(t, r); got[0] != 3 || got[50_000] != 1 || got[99_999] != 2 {
				t.Fatalf("%T has %d %d %d", r, got[0], got[50_000], got[99_999])
			}
		}
		if l.Version() != 3 {
			t.Fatalf("version %d", l.Version())
		}
		var h Handle
		must(t, h.WriteRequest(m))
		must(t, h.Acquire(background))
		must(t, h.Resize(200_001))
		b, err := h.WriteMap()
		must(t, err)
		b[200_000] = 9
		must(t, h.Release())
		if got := read(t, l); len(got) != 200_001 || got[200_000] != 9 || got[0] != 3 || got[150_000] != 0 {
			t.Fatalf("after resizing: %d bytes", len(got))
		}
	})
}

// One location has one mirror in a process, and so one copy of its data.
func TestMirrorIsOpenedOnce(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		s := new(Server)
		s.Add(newLocation(t, "l", 8, options...))
		p := dialled(t, s, listen(t, network), new(Dialer))
		m := mirror(t, p, "l")
		if mirror(t, p, "l") != m {
			t.Fatal("it was opened twice")
		}
		s.Add(newLocation(t, "l", 8, options...))
		other := mirror(t, p, "l")
		if other == m {
			t.Fatal("a location that was replaced is opened still")
		}
		write(t, other, func(b []byte) { b[0] = 1 })
		before := p.present()
		cut(p)
		waitFor(t, func() bool { return p.present() != before })
		for _, r := range []Resource{m, other} {
			if read(t, r)[0] != 1 {
				t.Fatal("a mirror is not open any more")
			}
		}
	})
}

func (p *Peer) present() *transport.Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link
}

func TestRemoteRefusals(t *testing.T) {
	l := newLocation(t, "l", 8, MaxRequests(1))
	_, p := served(t, "tcp", l)
	if _, err := p.Mirror(background, "nothing"); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	m := mirror(t, p, "l")
	var a, b Handle
	must(t, a.ReadRequest(m))
	must(t, b.ReadRequest(m))
	must(t, a.Acquire(background))
	if err := b.Acquire(background); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if _, err := a.WriteMap(); !errors.Is(err, ErrReadOnly) {
		t.Fatal(err)
	}
	if err := a.ReadRequest(m); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	must(t, a.Release())
}

// Only what changed is sent, and to several readers once.
func TestOnlyChangesAreSent(t *testing.T) {
	l := newLocation(t, "l", 64*memory.BlockSize)
	_, p := served(t, "tcp", l)
	m := mirror(t, p, "l")
	read(t, m)
	lacks := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		l.lock()
		defer l.mu.Unlock()
		n := 0
		for _, e := range l.journal.Since(l.memory.Size(), m.replica.Version) {
			n += e.Length
		}
		return n
	}
	if n := lacks(); n != 0 {
		t.Fatalf("after reading, %d bytes are missing", n)
	}
	write(t, l, func(b []byte) { b[5] = 1 }) // sums are made here
	read(t, m)
	write(t, l, func(b []byte) { b[3*memory.BlockSize] = 1 })
	if n := lacks(); n != memory.BlockSize {
		t.Fatalf("one byte changed, %d would be sent", n)
	}
	read(t, m)
	read(t, m)
	write(t, m, func(b []byte) { b[9*memory.BlockSize] = 1 })
	read(t, l)
	if n := lacks(); n != 0 {
		t.Fatalf("the writer's own mirror would get %d bytes", n)
	}
}

func TestRemoteCancel(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 1<<20, options...)
		_, p := served(t, network, l)
		m := mirror(t, p, "l")
		rng := seed.Source(t)
		var all sync.WaitGroup
		for range rounds(100) {
			h, mode := new(Handle), Mode(rng.IntN(2))
			must(t, h.request(m, mode))
			ctx, cancel := context.WithCancel(background)
			all.Go(func() {
				if h.Acquire(ctx) == nil {
					must(t, h.Release())
				}
			})
			if rng.IntN(2) == 0 {
				all.Go(cancel)
			} else {
				defer cancel()
			}
		}
		all.Wait()
		write(t, m, func(b []byte) { b[0] = 1 })
		if n := l.Waiting(); n > 1 { // the release of the write may be on its way
			t.Fatalf("%d requests are left", n)
		}
	})
}

func TestRemoteHistoryIsLinearizable(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		rng := seed.Source(t)
		for range rounds(1) {
			l := newLocation(t, "l", 8, options...)
			s, p := served(t, network, l)
			q := dialled(t, s, listen(t, network), new(Dialer))
			m, n := mirror(t, p, "l"), mirror(t, q, "l")
			checkLinearizable(t, registerHistory(t, rng, []Resource{l, m, n, l, m, n}, 15))
		}
	})
}

// Pairs over mirrors and locations take turns strictly.
func TestRemotePairsTakeTurns(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		_, p := served(t, network, l)
		pairs := make([]Pair, 4)
		for i := range pairs {
			r := Resource(l)
			if i%2 == 1 {
				r = mirror(t, p, "l")
			}
			before := l.Waiting()
			must(t, pairs[i].WriteRequest(r))
			waitFor(t, func() bool { return l.Waiting() == before+1 })
		}
		var all sync.WaitGroup
		for i := range pairs {
			all.Go(func() {
				for n := range 50 {
					must(t, pairs[i].Acquire(background))
					v, err := WriteAs[uint64](&pairs[i])
					must(t, err)
					if v[0] != uint64(n*len(pairs)+i) {
						t.Errorf("pair %d, iteration %d: the count is %d", i, n, v[0])
					}
					v[0]++
					must(t, pairs[i].Release())
				}
				must(t, pairs[i].Cancel())
			})
		}
		all.Wait()
	})
}

func TestInsecureIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	must(t, err)
	if err := new(Server).Serve(l); !errors.Is(err, ErrInsecure) {
		t.Fatal(err)
	}
}

// Both ends of one connection can own and ask.
func TestBothWays(t *testing.T) {
	here, there := newLocation(t, "here", 8), newLocation(t, "there", 8)
	s, other := new(Server), new(Server)
	s.Add(here)
	other.Add(there)
	p := dialled(t, s, listen(t, "tcp"), &Dialer{Serve: other})
	write(t, mirror(t, p, "here"), func(b []byte) { b[0] = 1 })
	back, err := s.Peer(background, ProcessName())
	must(t, err)
	write(t, mirror(t, back, "there"), func(b []byte) { b[0] = 2 })
	if read(t, here)[0] != 1 || read(t, there)[0] != 2 {
		t.Fatal("the writes are not there")
	}
}
