package orwl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/seed"
)

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

// A release at a mirror that returns nil may be lost on its way. The next Acquire of a pair says
// whether it has arrived.
func TestReleaseMayNotArrive(t *testing.T) {
	l := newLocation(t, "l", 8)
	s := new(Server)
	s.Add(l)
	direct := listen(t, "tcp")
	go s.Serve(direct)
	t.Cleanup(s.Close)
	deaf := make(chan struct{})
	r := &relay{Listener: listen(t, "tcp"), server: direct.Addr().String(), budget: 1 << 30, deaf: deaf}
	go r.run(t)
	t.Cleanup(func() { r.Close() })
	p, err := (&Dialer{Once: true}).Dial(background, "tcp", r.Addr().String())
	must(t, err)
	t.Cleanup(func() { p.Close() })
	var pair Pair
	must(t, pair.WriteRequest(mirror(t, p, "l")))
	for i := range 2 {
		must(t, pair.Acquire(background))
		if l.Version() != uint64(i) {
			t.Fatalf("the next request is granted before release %d has arrived", i)
		}
		b, err := pair.WriteMap()
		must(t, err)
		b[0] = byte(i + 1)
		if i == 1 {
			close(deaf) // from here on the network loses everything
		}
		must(t, pair.Release())
	}
	cut(p)
	if err := pair.Acquire(background); !errors.Is(err, ErrLeaseLost) {
		t.Fatal(err)
	}
	if b := read(t, l); b[0] != 1 {
		t.Fatalf("the location has %d", b[0])
	}
}

func TestConnectionsCutAtRandom(t *testing.T) {
	rng := seed.Source(t)
	l := newLocation(t, "l", 4*memory.BlockSize)
	s := new(Server)
	s.Add(l)
	listener := listen(t, "tcp")
	go s.Serve(listener)
	t.Cleanup(s.Close)
	var all sync.WaitGroup
	for range rounds(4) {
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

// checkCounts reports whether writes were all or nothing.
func checkCounts(t *testing.T, b []byte) {
	t.Helper()
	counts := BytesAs[uint64](b)
	for i, c := range counts {
		if c != counts[0] {
			t.Fatalf("counter 0 is %d, counter %d is %d: half a write is visible", counts[0], i, c)
		}
	}
}

// cut ends the present connection of a peer as the network does.
func cut(p *Peer) {
	p.cut()
}
