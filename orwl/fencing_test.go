package orwl

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"fairway/orwl/internal/memory"
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
	stale := frame{kind: frameRelease, ok: true, id: h.remote.id, generation: h.generation - 1, size: 8, extents: []memory.Extent{{Offset: 0, Length: 8}}}
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
	whole := []memory.Extent{{Offset: 0, Length: 8}}
	var reader, writer, waits Handle
	must(t, reader.ReadRequest(m))
	must(t, reader.Acquire(background))
	forge(frame{id: reader.remote.id, generation: reader.generation, ok: true, extents: whole})
	forge(frame{id: reader.remote.id, generation: reader.generation, extents: whole})
	must(t, reader.Release())
	must(t, writer.WriteRequest(l))
	must(t, writer.Acquire(background))
	must(t, waits.WriteRequest(m))
	for generation := range writer.Generation() + 2 {
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
	silent, err := newLink(background, conn, nil, time.Hour)
	must(t, err)
	for _, f := range []frame{{kind: frameOpen, id: 1, text: "l"}, {kind: frameRequest, id: 2, mirror: 1, mode: Write}} {
		_, err := conn.Write(appendFrame(nil, &f))
		must(t, err)
	}
	waitFor(t, func() bool { return l.Waiting() == 1 })
	write(t, l, func(b []byte) { b[0] = 1 }) // comes to its turn when the lease is over
	_ = silent
}
