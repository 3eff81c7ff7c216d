package orwl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"fairway/orwl/internal/memory"
)

// DefaultLease is how long the other end of a connection may be silent before
// it counts as lost.
const DefaultLease = 10 * time.Second

// MinLease is the shortest lease, so that no peer can have this process send pings all the
// time. A shorter one counts as this.
const MinLease = 10 * time.Millisecond

// ticksPerLease is how often within a lease each end says that it lives.
const ticksPerLease = 4

// localSendBuffer is the size in bytes of what the kernel keeps of data on its way
// between processes of one machine. Without a bound it grows to several
// megabytes, and the receiver finds its data in memory and not in the cache.
const localSendBuffer = 512 << 10

// link is one connection between two processes. Either end may ask the other
// for locations.
type link struct {
	conn    net.Conn
	out     *outbox
	in      frameReader
	fds     *descriptorReader
	lease   time.Duration
	other   string // the process at the other end
	serves  bool   // it serves locations
	heard   atomic.Uint64
	peer    *Peer
	session *session // nil where nothing is served
	tick    *alarm   // for pings; closed when nothing is read any more
	reading *reading
	frame   frame // the last one, of who has the right to read
}

// newLink exchanges hellos. The shorter lease of both ends counts.
func newLink(ctx context.Context, conn net.Conn, server *Server, lease time.Duration) (*link, error) {
	l := &link{conn: conn, out: newOutbox(conn), reading: newReading()}
	if tcp, ok := conn.(*net.TCPConn); ok && onThisMachine(tcp.RemoteAddr()) {
		tcp.SetWriteBuffer(localSendBuffer)
	}
	reader, fds := newReader(conn)
	l.fds = fds
	l.in.in = bufio.NewReaderSize(countingReader{reader, &l.heard}, 32<<10)
	l.peer = newPeer(l)
	if server != nil {
		l.session = newSession(l, server)
	}
	err := l.greet(ctx, lease)
	if err == nil {
		err = l.makeAlarms()
	}
	if err != nil {
		l.fds.close()
		return nil, err
	}
	return l, nil
}

// greet exchanges hellos, within a lease and before ctx ends.
func (l *link) greet(ctx context.Context, lease time.Duration) error {
	l.conn.SetDeadline(time.Now().Add(lease))
	stop := context.AfterFunc(ctx, func() { l.conn.SetDeadline(time.Unix(1, 0)) })
	err := l.exchangeHellos(lease)
	switch {
	case !stop():
		return fmt.Errorf("hello: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("hello: %w", err)
	}
	return l.conn.SetDeadline(time.Time{})
}

func (l *link) exchangeHellos(lease time.Duration) error {
	hello := frame{kind: frameHello, version: protocolVersion, text: processID, size: int64(lease), ok: l.session != nil}
	if _, err := l.conn.Write(appendFrame(nil, &hello)); err != nil {
		return err
	}
	f := &l.frame
	l.in.limit = maxHello
	if err := l.in.next(f); err != nil {
		return err
	}
	if f.kind != frameHello || f.text == "" || len(f.extents) > 0 {
		return errFrame
	}
	if f.version != protocolVersion {
		return fmt.Errorf("%w: the other end speaks version %d, this one %d", errFrame, f.version, protocolVersion)
	}
	l.in.limit = MaxHeader
	l.other, l.peer.other, l.serves = f.text, f.text, f.ok
	l.lease = min(lease, max(time.Duration(f.size), MinLease))
	return nil
}

// cut ends the connection, without waiting.
func (l *link) cut() error { return socketOf(l.conn).Close() }

func (l *link) makeAlarms() (err error) {
	if l.tick, err = newAlarm(); err != nil {
		return err
	}
	if l.reading.back, err = newAlarm(); err != nil {
		l.tick.close()
	}
	return err
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
			l.cut()
			l.out.close() // who reads may wait for what is queued to leave
		}
	}()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.watch()
	}()
	err := l.attend()
	l.tick.close()
	l.reading.back.close()
	l.cut()
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
	period := l.lease / ticksPerLease
	last, silent := uint64(0), 0
	for l.tick.set(period); l.tick.wait(); l.tick.set(period) {
		now := l.heard.Load()
		if silent++; now != last {
			last, silent = now, 0
		}
		if silent >= ticksPerLease {
			l.cut()
			return
		}
		l.send(frame{kind: framePing})
	}
}

// send sends a frame without data.
func (l *link) send(f frame) { l.sendData(f, nil, nil) }

// sendData sends a frame with the data of its extents. Up to inlineLimit is
// copied; more must not change until sent is called.
func (l *link) sendData(f frame, data []byte, sent func()) {
	if f.dataLength() <= inlineLimit {
		l.out.sendCopy(&f, data)
		return
	}
	l.sendInPlace(f, data, sent)
}

// sendInPlace sends a frame with data that must not change until sent is called.
func (l *link) sendInPlace(f frame, data []byte, sent func()) {
	header := appendFrame(nil, &f)
	parts := net.Buffers{header}
	for _, e := range f.extents {
		parts = append(parts, data[e.Offset:e.Offset+e.Length])
	}
	l.out.send(message{parts: parts, fd: -1, weight: weigh(&f, len(header)), sent: sent})
}

// sendMemory sends a frame without data, and what the other process needs to map
// the memory. Where that cannot be had the connection ends.
func (l *link) sendMemory(f frame, file *memory.File, writable bool) {
	fd, err := file.Export(writable)
	if err != nil {
		l.cut()
		return
	}
	l.out.send(message{parts: net.Buffers{appendFrame(nil, &f)}, fd: fd, weight: descriptorWeight, sent: func() { closeDescriptor(fd) }})
}

func (l *link) handle(f *frame) error {
	switch {
	case f.kind == framePing:
		// Hearing it is what counts.
		return nil
	case f.kind >= frameOpened && f.kind <= frameAnswered:
		return l.peer.handle(f)
	case f.kind <= frameSync && l.session != nil:
		l.out.awaitRoom()
		return l.session.handle(f)
	}
	return fmt.Errorf("%w: kind %d is not expected", errFrame, f.kind)
}

// take reads the data of a frame into where its extents say.
func (l *link) take(f *frame, data []byte) error {
	for _, e := range f.extents {
		if _, err := io.ReadFull(l.in.in, data[e.Offset:e.Offset+e.Length]); err != nil {
			return err
		}
	}
	return nil
}

// drop reads the data of a frame that nobody wants.
func (l *link) drop(f *frame) error {
	_, err := io.CopyN(io.Discard, l.in.in, int64(f.dataLength()))
	return err
}
