package orwl

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
)

// What a lost writer on another host wrote is not visible, and a write-back
// under an old grant is refused.
func TestFencing(t *testing.T) {
	l := newLocation(t, "l", 8)
	_, p := served(t, "tcp", l)
	m := mirror(t, p, "l")
	var h Handle
	must(t, h.WriteRequest(m))
	must(t, h.Acquire(background))
	stale := transport.Frame{Kind: transport.Release, OK: true, ID: h.remote.id, Generation: h.generation - 1, Size: 8,
		Extents: []memory.Extent{{Offset: 0, Length: 8}}}
	p.link.SendData(stale, bytes.Repeat([]byte{7}, 8), nil)
	must(t, h.Release())
	stale.Generation = h.generation
	p.link.SendData(stale, bytes.Repeat([]byte{7}, 8), nil)
	if got := read(t, m); got[0] != 0 {
		t.Fatalf("a stale write is visible: %v", got)
	}
}

// A write-back is refused, too, by a request that still waits, and by a read.
func TestFencingWithoutAWriteGrant(t *testing.T) {
	l := newLocation(t, "l", 8)
	_, p := served(t, "tcp", l)
	m := mirror(t, p, "l")
	forge := func(f transport.Frame) {
		f.Kind, f.Size = transport.Release, 8
		data := bytes.Repeat([]byte{7}, f.DataLength())
		p.link.SendData(f, data, nil)
		_, err := p.Mirror(background, "nothing") // what was sent before is done
		if !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
	}
	whole := []memory.Extent{{Offset: 0, Length: 8}}
	var reader, writer, waits Handle
	must(t, reader.ReadRequest(m))
	must(t, reader.Acquire(background))
	forge(transport.Frame{ID: reader.remote.id, Generation: reader.generation, OK: true, Extents: whole})
	forge(transport.Frame{ID: reader.remote.id, Generation: reader.generation, Extents: whole})
	must(t, reader.Release())
	must(t, writer.WriteRequest(l))
	must(t, writer.Acquire(background))
	must(t, waits.WriteRequest(m))
	for generation := range writer.Generation() + 2 {
		forge(transport.Frame{ID: waits.remote.id, Generation: generation, OK: true, Extents: whole})
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
	silent := hostileDial(t, listener.Addr())
	silent.send(t, &transport.Frame{Kind: transport.Open, ID: 1, Text: "l"},
		&transport.Frame{Kind: transport.Request, ID: 2, Mirror: 1, Mode: Write})
	waitFor(t, func() bool { return l.Waiting() == 1 })
	write(t, l, func(b []byte) { b[0] = 1 }) // comes to its turn when the lease is over
}
