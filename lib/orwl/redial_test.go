//go:build unix

package orwl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
	"fairway/lib/seed"
)

// After a cut what was held is lost, and the mirror serves again with the data as
// it is then.
func TestReconnects(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		l := newLocation(t, "l", 2*memory.BlockSize, options...)
		_, p := served(t, network, l)
		m := mirror(t, p, "l")
		write(t, m, func(b []byte) { b[0] = 1 })
		var lost, waits Handle
		must(t, lost.WriteRequest(m))
		must(t, lost.Acquire(background))
		must(t, waits.ReadRequest(m))
		late, err := lost.WriteMap()
		must(t, err)
		late[0] = 66
		cut(p)
		if err := waits.Acquire(background); !errors.Is(err, ErrLeaseLost) {
			t.Fatal(err)
		}
		must(t, p.Connected(background))
		write(t, l, func(b []byte) { b[1] = 2 })
		late[1] = 77
		if b := read(t, m); b[0] != 1 || b[1] != 2 {
			t.Fatalf("the mirror has %v", b[:2])
		}
		if err := lost.Release(); !errors.Is(err, ErrLeaseLost) {
			t.Fatal(err)
		}
		write(t, m, func(b []byte) { b[2] = 3 })
		if b := read(t, l); b[0] != 1 || b[1] != 2 || b[2] != 3 {
			t.Fatalf("the location has %v", b[:3])
		}
	})
}

// An owner that does not come back within the lease is lost for good.
func TestReconnectsOnlyWithinTheLease(t *testing.T) {
	l := newLocation(t, "l", 8)
	s := new(Server)
	s.Add(l)
	p := dialled(t, s, listen(t, "tcp"), &Dialer{Lease: 200 * time.Millisecond})
	m := mirror(t, p, "l")
	s.Close()
	<-p.Done()
	if err := p.Connected(background); !errors.Is(err, ErrLeaseLost) {
		t.Fatal(err)
	}
	if err := new(Handle).ReadRequest(m); !errors.Is(err, ErrLeaseLost) {
		t.Fatal(err)
	}
}

// A process that was started again in the place of the owner has other locations.
func TestAnotherProcessIsNoReplacement(t *testing.T) {
	listener := listen(t, "tcp")
	address := listener.Addr().String()
	s := new(Server)
	s.Add(newLocation(t, "l", 8))
	p := dialled(t, s, listener, new(Dialer))
	other := startChild(t, "impostor", address)
	s.Close()
	must(t, other.Tell("go"))
	other.line(t)
	<-p.Done()
	if err := p.Connected(background); !errors.Is(err, ErrLeaseLost) {
		t.Fatal(err)
	}
}

// A cut while tasks request, in the middle of everything: they go on over the next
// connection, and no half of a write is visible.
func TestReconnectsAtRandom(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		rng := seed.Source(t)
		l := newLocation(t, "l", 2*memory.BlockSize, options...)
		_, p := served(t, network, l)
		m := mirror(t, p, "l")
		done := make(chan error, 3)
		for range cap(done) {
			go func() { done <- countThroughCuts(p, m, rounds(200)) }()
		}
		for range rounds(10) {
			until := l.Version() + uint64(rng.IntN(30))
			waitFor(t, func() bool { return l.Version() >= until || len(done) > 0 })
			cut(p)
		}
		for range cap(done) {
			must(t, <-done)
		}
		checkCounts(t, read(t, l))
	})
}

// countThroughCuts increments all counters n times, and starts again where the
// connection is lost meanwhile.
func countThroughCuts(p *Peer, m *Mirror, n int) error {
	var h Handle
	for n > 0 {
		err := countOnce(&h, m)
		switch {
		case err == nil:
			n--
		case !errors.Is(err, ErrLeaseLost):
			return err
		default:
			if err := p.Connected(background); err != nil {
				return err
			}
		}
	}
	return nil
}

// childTakesAddress serves at an address once it is told that it is free.
func childTakesAddress(args []string) error {
	bufio.NewReader(os.Stdin).ReadString('\n')
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("serving")
	return new(Server).Serve(l)
}

// What a peer is asked while its connection is made again is answered or fails. It does not
// succeed without an answer.
func TestAskingWhileDiallingAgainNeedsAnAnswer(t *testing.T) {
	_, p := served(t, "tcp", newLocation(t, "l", 8))
	ended, cancel := context.WithCancel(background)
	cancel()
	over := make(chan struct{})
	var lost sync.WaitGroup
	lost.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			p.mu.Lock()
			p.err = nil
			if i%2 == 0 {
				p.err = ErrLeaseLost
			}
			p.mu.Unlock()
		}
	})
	for range 20_000 {
		if err := p.ask(ended, func(uint64) transport.Frame { return transport.Frame{Kind: transport.Ping} }); err == nil {
			t.Error("nobody has answered")
			break
		}
	}
	close(over)
	lost.Wait()
	p.mu.Lock()
	p.err = nil
	p.mu.Unlock()
}
