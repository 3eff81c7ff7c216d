package orwl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fairway/test/seed"
)

// served starts a server for the locations and returns a dialled peer.
func served(t testing.TB, network string, locations ...*Location) (*Server, *Peer) {
	t.Helper()
	s := new(Server)
	s.Add(locations...)
	return s, dialled(t, s, listen(t, network), new(Dialer))
}

func listen(t testing.TB, network string) net.Listener {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "socket")
	}
	l, err := net.Listen(network, address)
	must(t, err)
	return l
}

func dialled(t testing.TB, s *Server, l net.Listener, d *Dialer) *Peer {
	t.Helper()
	go s.Serve(l)
	t.Cleanup(s.Close)
	p, err := d.Dial(background, l.Addr().Network(), l.Addr().String())
	must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func mirror(t testing.TB, p *Peer, name string) *Mirror {
	t.Helper()
	m, err := p.Mirror(background, name)
	must(t, err)
	return m
}

// write changes the data under a lock of its own.
func write(t testing.TB, r Resource, change func(b []byte)) {
	t.Helper()
	var h Handle
	must(t, h.WriteRequest(r))
	must(t, h.Acquire(background))
	b, err := h.WriteMap()
	must(t, err)
	change(b)
	must(t, h.Release())
}

// read returns a copy of the data.
func read(t testing.TB, r Resource) []byte {
	t.Helper()
	var h Handle
	must(t, h.ReadRequest(r))
	must(t, h.Acquire(background))
	b, err := h.ReadMap()
	must(t, err)
	b = bytes.Clone(b)
	must(t, h.Release())
	return b
}

func overEach(t *testing.T, f func(t *testing.T, network string, options []Option)) {
	for name, options := range map[string][]Option{"tcp": nil, "unix": nil, "shared": {Shared()}} {
		network := name
		if name == "shared" {
			network = "unix"
		}
		t.Run(name, func(t *testing.T) { f(t, network, options) })
	}
}

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

func (p *Peer) present() *link {
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
	l := newLocation(t, "l", 64*blockSize)
	s, p := served(t, "tcp", l)
	m := mirror(t, p, "l")
	read(t, m)
	s.mu.Lock()
	var session *session
	for link := range s.links {
		session = link.session
	}
	s.mu.Unlock()
	lacks := func() int {
		session.mu.Lock()
		defer session.mu.Unlock()
		n := 0
		for _, sub := range session.subscribed {
			for _, e := range l.journal.since(l.memory.size(), sub.version) {
				n += e.length
			}
		}
		return n
	}
	if n := lacks(); n != 0 {
		t.Fatalf("after reading, %d bytes are missing", n)
	}
	write(t, l, func(b []byte) { b[5] = 1 }) // sums are made here
	read(t, m)
	write(t, l, func(b []byte) { b[3*blockSize] = 1 })
	if n := lacks(); n != blockSize {
		t.Fatalf("one byte changed, %d would be sent", n)
	}
	read(t, m)
	read(t, m)
	write(t, m, func(b []byte) { b[9*blockSize] = 1 })
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
		for range 100 {
			h, mode := new(Handle), Mode(rng.IntN(2))
			must(t, m.insert(h, mode))
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
		l := newLocation(t, "l", 8, options...)
		s, p := served(t, network, l)
		q := dialled(t, s, listen(t, network), new(Dialer))
		m, n := mirror(t, p, "l"), mirror(t, q, "l")
		checkLinearizable(t, registerHistory(t, seed.Source(t), []Resource{l, m, n, l, m, n}, 15))
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

// waitFor polls for something that another goroutine is about to do.
func waitFor(t testing.TB, f func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("it does not happen")
		}
	}
}

// A connection that is cut takes everything with it that was held or waiting
// there, and nobody else notices but by getting on.
func TestCutConnection(t *testing.T) {
	for loss, want := range map[Loss]byte{RollBack: 1, Skip: 2, Poison: 0} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			l := newLocation(t, "l", 8, Shared(), OnLoss(loss))
			s, p := served(t, "unix", l)
			q := dialled(t, s, listen(t, "unix"), new(Dialer))
			write(t, l, func(b []byte) { b[0] = 1 })
			m, other := mirror(t, p, "l"), mirror(t, q, "l")
			var lost, behind, survivor Handle
			must(t, lost.WriteRequest(m))
			must(t, lost.Acquire(background))
			must(t, behind.WriteRequest(m))
			waitFor(t, func() bool { return l.Waiting() == 2 })
			must(t, survivor.ReadRequest(other))
			b, err := lost.WriteMap()
			must(t, err)
			b[0] = 2
			must(t, p.Close())
			waitFor(t, func() bool { return l.Waiting() <= 1 })
			if err := behind.Acquire(background); !errors.Is(err, ErrLeaseLost) {
				t.Fatal(err)
			}
			if err := lost.Release(); !errors.Is(err, ErrLeaseLost) {
				t.Fatal(err)
			}
			err = survivor.Acquire(background)
			if loss == Poison {
				if !errors.Is(err, ErrPoisoned) {
					t.Fatal(err)
				}
				return
			}
			must(t, err)
			got, err := survivor.ReadMap()
			must(t, err)
			if got[0] != want {
				t.Fatalf("the survivor sees %d, want %d", got[0], want)
			}
			must(t, survivor.Release())
		})
	}
}

// What a lost writer on another host wrote is not visible, and a write-back
// under an old grant is refused.
func TestFencing(t *testing.T) {
	l := newLocation(t, "l", 8)
	_, p := served(t, "tcp", l)
	m := mirror(t, p, "l")
	var h Handle
	must(t, h.WriteRequest(m))
	must(t, h.Acquire(background))
	stale := frame{kind: frameRelease, ok: true, id: h.remote.id, generation: h.generation - 1, size: 8, extents: []extent{{0, 8}}}
	p.link.sendData(stale, bytes.Repeat([]byte{7}, 8), nil)
	must(t, h.Release())
	stale.generation = h.generation
	p.link.sendData(stale, bytes.Repeat([]byte{7}, 8), nil)
	if got := read(t, m); got[0] != 0 {
		t.Fatalf("a stale write is visible: %v", got)
	}
}

// A write-back is refused, too, by a request that still waits, and by a read.
func TestFencingWithoutAWriteGrant(t *testing.T) {
	l := newLocation(t, "l", 8)
	_, p := served(t, "tcp", l)
	m := mirror(t, p, "l")
	forge := func(f frame) {
		f.kind, f.size = frameRelease, 8
		data := bytes.Repeat([]byte{7}, f.dataLength())
		p.link.sendData(f, data, nil)
		_, err := p.Mirror(background, "nothing") // what was sent before is done
		if !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
	}
	whole := []extent{{0, 8}}
	var reader, writer, waits Handle
	must(t, reader.ReadRequest(m))
	must(t, reader.Acquire(background))
	forge(frame{id: reader.remote.id, generation: reader.generation, ok: true, extents: whole})
	forge(frame{id: reader.remote.id, generation: reader.generation, extents: whole})
	must(t, reader.Release())
	must(t, writer.WriteRequest(l))
	must(t, writer.Acquire(background))
	must(t, waits.WriteRequest(m))
	for generation := range writer.generation + 2 {
		forge(frame{id: waits.remote.id, generation: generation, ok: true, extents: whole})
	}
	if b, err := writer.ReadMap(); err != nil || b[0] != 0 {
		t.Fatalf("the holder sees %v (%v)", b, err)
	}
	must(t, writer.Release())
}

// A process that stops answering loses its lease, although its connection is up.
func TestSilentHolderLosesLease(t *testing.T) {
	l := newLocation(t, "l", 8)
	s := &Server{Lease: 200 * time.Millisecond}
	s.Add(l)
	listener := listen(t, "tcp")
	go s.Serve(listener)
	t.Cleanup(s.Close)
	conn, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	defer conn.Close()
	silent, err := newLink(conn, nil, time.Hour)
	must(t, err)
	for _, f := range []frame{{kind: frameOpen, id: 1, text: "l"}, {kind: frameRequest, id: 2, mirror: 1, mode: Write}} {
		_, err := conn.Write(appendFrame(nil, &f))
		must(t, err)
	}
	waitFor(t, func() bool { return l.Waiting() == 1 })
	write(t, l, func(b []byte) { b[0] = 1 }) // comes to its turn when the lease is over
	_ = silent
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
	var back *Peer
	waitFor(t, func() bool {
		var ok bool
		back, ok = s.Peer(processID)
		return ok
	})
	write(t, mirror(t, back, "there"), func(b []byte) { b[0] = 2 })
	if read(t, here)[0] != 1 || read(t, there)[0] != 2 {
		t.Fatal("the writes are not there")
	}
}

func TestConnectionsCutAtRandom(t *testing.T) {
	rng := seed.Source(t)
	l := newLocation(t, "l", 4*blockSize)
	s := new(Server)
	s.Add(l)
	listener := listen(t, "tcp")
	go s.Serve(listener)
	t.Cleanup(s.Close)
	var all sync.WaitGroup
	for range 4 {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		all.Go(func() {
			for range 10 {
				p, err := Dial(background, "tcp", listener.Addr().String())
				must(t, err)
				cut := make(chan struct{})
				go func() {
					defer close(cut)
					for range own.IntN(2000) {
						p.Name()
					}
				}()
				countUntilLost(t, p, cut)
				p.Close()
			}
		})
	}
	all.Wait()
	checkCounts(t, read(t, l))
}

// countUntilLost increments all counters of the location together, and cuts
// the connection some time after.
func countUntilLost(t *testing.T, p *Peer, cut <-chan struct{}) {
	m, err := p.Mirror(background, "l")
	must(t, err)
	var pair Pair
	must(t, pair.WriteRequest(m))
	for {
		select {
		case <-cut:
			go p.Close()
			cut = nil
		default:
		}
		if pair.Acquire(background) != nil {
			return
		}
		counts, err := WriteAs[uint64](&pair)
		must(t, err)
		for i := range counts {
			counts[i]++
		}
		if pair.Release() != nil {
			return
		}
	}
}

// checkCounts says whether writes were all or nothing.
func checkCounts(t *testing.T, b []byte) {
	t.Helper()
	counts := BytesAs[uint64](b)
	for i, c := range counts {
		if c != counts[0] {
			t.Fatalf("counter 0 is %d, counter %d is %d: half a write is visible", counts[0], i, c)
		}
	}
}

func TestSizeFromElsewhereIsBounded(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 8, options...)
		s := &Server{MaxSize: 100}
		s.Add(l)
		p := dialled(t, s, listen(t, network), &Dialer{Once: true})
		m := mirror(t, p, "l")
		var h Handle
		must(t, h.WriteRequest(m))
		must(t, h.Acquire(background))
		if err := h.Resize(101); !errors.Is(err, ErrTooLarge) {
			t.Fatal(err)
		}
		must(t, h.Resize(100))
		must(t, h.Release())
		if n := len(read(t, l)); n != 100 {
			t.Fatalf("%d bytes", n)
		}
		// One that does not keep to the limit loses its connection.
		m.replica.limit = 1000
		must(t, h.WriteRequest(m))
		must(t, h.Acquire(background))
		must(t, h.Resize(101))
		must(t, h.Release())
		<-p.Done()
		if n := len(read(t, l)); n != 100 {
			t.Fatalf("%d bytes after a release that was refused", n)
		}
	})
}

func TestSizeThatComesIsBounded(t *testing.T) {
	l := newLocation(t, "l", 101)
	s := new(Server)
	s.Add(l)
	p := dialled(t, s, listen(t, "tcp"), &Dialer{MaxSize: 100, Once: true})
	var h Handle
	must(t, h.ReadRequest(mirror(t, p, "l")))
	if err := h.Acquire(background); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
}

// cut ends the present connection of a peer as the network does.
func cut(p *Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link.conn.Close()
}
