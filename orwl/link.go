package orwl

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// DefaultLease is how long the other end of a connection may be silent before
// it counts as lost.
const DefaultLease = 10 * time.Second

// ticksPerLease is how often within a lease each end says that it lives.
const ticksPerLease = 4

// link is one connection between two processes. Either end may ask the other
// for locations.
type link struct {
	conn    net.Conn
	out     *outbox
	in      *bufio.Reader
	fds     *descriptorReader
	lease   time.Duration
	other   string // the process at the other end
	heard   atomic.Uint64
	peer    *Peer
	session *session      // nil where nothing is served
	ending  chan struct{} // closed when nothing is read any more
	reading reading
	scratch []byte // of who has the right to read
}

// newLink exchanges hellos. The shorter lease of both ends counts.
func newLink(conn net.Conn, server *Server, lease time.Duration) (*link, error) {
	l := &link{conn: conn, out: newOutbox(conn), ending: make(chan struct{}), reading: newReading()}
	reader, fds := newReader(conn)
	l.fds = fds
	l.in = bufio.NewReaderSize(countingReader{reader, &l.heard}, 32<<10)
	l.peer = newPeer(l)
	if server != nil {
		l.session = newSession(l, server)
	}
	conn.SetDeadline(time.Now().Add(lease))
	defer conn.SetDeadline(time.Time{})
	hello := frame{kind: frameHello, version: protocolVersion, text: processID, size: int64(lease)}
	if _, err := conn.Write(appendFrame(nil, &hello)); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	f, _, err := readFrame(l.in, nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("hello: %w", err)
	case f.kind != frameHello || f.version != protocolVersion || f.text == "":
		return nil, fmt.Errorf("hello: %w", errFrame)
	}
	l.other, l.peer.other = f.text, f.text
	l.lease = min(lease, max(time.Duration(f.size), time.Millisecond))
	return l, nil
}

// countingReader counts reads, so that somebody else sees whether data comes.
type countingReader struct {
	io.Reader
	n *atomic.Uint64
}

func (r countingReader) Read(b []byte) (int, error) {
	r.n.Add(1)
	return r.Reader.Read(b)
}

// run serves the connection until it ends, and then ends everything that
// depended on it.
func (l *link) run() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		if l.out.write() != nil {
			l.conn.Close()
		}
	}()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.watch()
	}()
	err := l.attend()
	close(l.ending)
	l.conn.Close()
	l.out.close()
	<-written
	<-watched
	l.fds.close()
	l.peer.fail(err)
	if l.session != nil {
		l.session.end()
	}
}

// watch pings, and closes the connection when nothing has come for a lease.
func (l *link) watch() {
	tick := time.NewTicker(l.lease / ticksPerLease)
	defer tick.Stop()
	last, silent := uint64(0), 0
	for {
		select {
		case <-l.ending:
			return
		case <-tick.C:
		}
		now := l.heard.Load()
		if silent++; now != last {
			last, silent = now, 0
		}
		if silent >= ticksPerLease {
			l.conn.Close()
			return
		}
		l.send(frame{kind: framePing})
	}
}

// send sends a frame without data.
func (l *link) send(f frame) { l.sendData(f, nil, nil) }

// sendData sends a frame with the data of its extents. More than inlineLimit
// must not change until sent is called.
func (l *link) sendData(f frame, data []byte, sent func()) {
	parts := net.Buffers{appendFrame(make([]byte, 0, 64+len(f.text)+10*len(f.extents)), &f)}
	if f.dataLength() <= inlineLimit { // a copy, so nobody has to wait for sent
		for _, e := range f.extents {
			parts[0] = append(parts[0], data[e.offset:e.offset+e.length]...)
		}
	} else {
		for _, e := range f.extents {
			parts = append(parts, data[e.offset:e.offset+e.length])
		}
	}
	l.out.send(message{parts: parts, fd: -1, sent: sent})
}

// sendMemory sends a frame without data, and what the other process needs to map
// the memory. Where that cannot be had the connection ends.
func (l *link) sendMemory(f frame, file *memoryFile) {
	fd, err := file.duplicate()
	if err != nil {
		l.conn.Close()
		return
	}
	l.out.send(message{parts: net.Buffers{appendFrame(nil, &f)}, fd: fd, sent: func() { closeDescriptor(fd) }})
}

func (l *link) handle(f *frame) error {
	switch {
	case f.kind == framePing:
		// Hearing it is what counts.
		return nil
	case f.kind >= frameOpened && f.kind <= frameReserved:
		return l.peer.handle(f)
	case f.kind <= frameStart && l.session != nil:
		return l.session.handle(f)
	}
	return fmt.Errorf("%w: kind %d is not expected", errFrame, f.kind)
}

// take reads the data of a frame into where its extents say.
func (l *link) take(f *frame, data []byte) error {
	for _, e := range f.extents {
		if _, err := io.ReadFull(l.in, data[e.offset:e.offset+e.length]); err != nil {
			return err
		}
	}
	return nil
}

// drop reads the data of a frame that nobody wants.
func (l *link) drop(f *frame) error {
	_, err := io.CopyN(io.Discard, l.in, int64(f.dataLength()))
	return err
}
