package orwl

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/seed"
)

// relay stands between a dialler and a server. It passes on a number of bytes from
// the server, and then nothing more in either direction, with both connections up:
// as a network does that drops packets.
type relay struct {
	net.Listener
	server string
	budget int64
	deaf   chan struct{} // closed when nothing is passed on from the dialler any more; or nil
}

func (r *relay) run(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		here, err := r.Accept()
		if err != nil {
			return
		}
		there, err := net.Dial("tcp", r.server)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { here.Close(); there.Close() })
		stalled := make(chan struct{})
		all.Go(func() {
			io.Copy(here, io.LimitReader(there, r.budget))
			close(stalled)
		})
		all.Go(func() { copyUntil(there, here, stalled, r.deaf) })
	}
}

// copyUntil passes bytes on as long as both channels are open, and reads and drops them then.
func copyUntil(to io.Writer, from io.Reader, done, deaf <-chan struct{}) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		select {
		case <-done:
		case <-deaf:
		default:
			to.Write(b[:n])
		}
	}
}

// A connection that falls silent at any byte, also in the middle of data, ends for
// both sides by the lease: the task gets an error, and the others go on.
func TestSilenceAtAnyByte(t *testing.T) {
	rng := seed.Source(t)
	for range rounds(6) {
		l := newLocation(t, "l", 64*memory.BlockSize)
		s := &Server{Lease: 300 * time.Millisecond}
		s.Add(l)
		direct := listen(t, "tcp")
		go s.Serve(direct)
		t.Cleanup(s.Close)
		r := &relay{
			Listener: listen(t, "tcp"), server: direct.Addr().String(), budget: 200 + rng.Int64N(4*64*memory.BlockSize),
		}
		go r.run(t)
		p, err := (&Dialer{Lease: 300 * time.Millisecond, Once: true}).Dial(background, "tcp", r.Addr().String())
		must(t, err)
		m, err := p.Mirror(background, "l")
		for err == nil {
			var h Handle
			if err = countOnce(&h, m); err == nil {
				write(t, l, func(b []byte) { // so that there is data to send
					for i := range BytesAs[uint64](b) {
						BytesAs[uint64](b)[i]++
					}
				})
			}
		}
		if !errors.Is(err, ErrLeaseLost) {
			t.Fatal(err)
		}
		<-p.Done()
		checkCounts(t, read(t, l)) // it comes to its turn when the server's lease is over
		must(t, r.Close())
		s.Close()
	}
}

func countOnce(h *Handle, r Resource) error {
	if err := h.WriteRequest(r); err != nil {
		return err
	}
	if err := h.Acquire(background); err != nil {
		return err
	}
	counts, err := WriteAs[uint64](h)
	if err != nil {
		return err
	}
	for i := range counts {
		counts[i]++
	}
	return h.Release()
}
