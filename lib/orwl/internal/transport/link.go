// Package transport carries frames between two processes. A Link is one connection: it
// exchanges hellos, says that this process lives and notices when the other one does not, has
// one goroutine at a time read, and bounds what either end can make the other keep. It knows
// no locks: Handlers take what comes.
package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// MinLease is the shortest lease, so that no peer can have this process send pings all the
// time. A shorter one counts as this.
const MinLease = 10 * time.Millisecond

// ticksPerLease is how often within a lease each end says that it lives.
const ticksPerLease = 4

// localSendBuffer is the size in bytes of what the kernel keeps of data on its way
// between processes of one machine. Without a bound it grows to several
// megabytes, and the receiver finds its data in memory and not in the cache.
const localSendBuffer = 512 << 10

// Handlers take what comes. They are called by who has the right to read, one at a time; an
// error ends the connection.
type Handlers struct {
	// Answered takes an answer of the other end.
	Answered func(f *Frame) error
	// Idle reports whether no request waits for a grant.
	Idle func() bool
	// Asked takes what the other end asks for; nil where nothing is served.
	Asked func(f *Frame) error
}

// Link is one connection between two processes. Either end may ask the other.
//
// One goroutine at a time reads it, who has the right to (reading): it alone uses in, frame and
// fds, calls the handlers, and reads the data of a frame before it reads the next
// one. Any goroutine may send. The link lasts from Connect until Run returns; nothing is
// delivered after that.
type Link struct {
	Hello // of the other end, with the shorter lease of both

	conn     net.Conn
	out      *outbox
	in       Reader
	fds      *descriptorReader // nil where none can come
	heard    atomic.Uint64     // counts reads, for watch
	busy     atomic.Bool       // who reads does something else than wait for the other end
	handlers Handlers          // set by Use, before anybody else has the link
	tick     *alarm            // for pings; closed when nothing is read any more
	reading  *reading
	frame    Frame // the last one
}

// Hello is what each end says of itself.
type Hello struct {
	// Process is its name.
	Process string
	// Serves says that it may be asked.
	Serves bool
	// Lease is how long the other end may be silent before it counts as lost.
	Lease time.Duration
}

// Connect exchanges hellos, within a lease and before ctx ends. The shorter lease of both
// ends counts. After an error the connection is closed.
func Connect(ctx context.Context, conn net.Conn, own Hello) (*Link, error) {
	l := &Link{conn: conn, out: newOutbox(conn), reading: newReading()}
	if tcp, ok := conn.(*net.TCPConn); ok && OnThisMachine(tcp.RemoteAddr()) {
		tcp.SetWriteBuffer(localSendBuffer)
	}
	reader, fds := newReader(conn)
	l.fds = fds
	l.in.In = bufio.NewReaderSize(watchedReader{reader, l}, 32<<10)
	err := l.greet(ctx, own)
	if err == nil {
		err = l.makeAlarms()
	}
	if err != nil {
		l.fds.close()
		l.Cut()
		return nil, err
	}
	return l, nil
}

// Use says who takes what comes. It is called once, before anybody else has the link.
func (l *Link) Use(h Handlers) { l.handlers = h }

func (l *Link) greet(ctx context.Context, own Hello) error {
	l.conn.SetDeadline(time.Now().Add(own.Lease))
	stop := context.AfterFunc(ctx, func() { l.conn.SetDeadline(time.Unix(1, 0)) })
	err := l.exchangeHellos(own)
	switch {
	case !stop():
		return fmt.Errorf("hello: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("hello: %w", err)
	}
	return l.conn.SetDeadline(time.Time{})
}

func (l *Link) exchangeHellos(own Hello) error {
	f := Frame{Kind: Greeting, Version: Version, Text: own.Process, Size: int64(own.Lease), OK: own.Serves}
	if _, err := l.conn.Write(AppendFrame(nil, &f)); err != nil {
		refusePlain(err)
		return err
	}
	l.in.Limit = maxHello
	if err := l.in.Next(&f); err != nil {
		return err
	}
	if f.Kind == Refused && f.Code == wantsTLS {
		return ErrWantsTLS
	}
	if f.Kind != Greeting || f.Text == "" || len(f.Extents) > 0 {
		return ErrMalformed
	}
	if f.Version != Version {
		return fmt.Errorf("%w: the other end speaks version %d, this one %d", ErrMalformed, f.Version, Version)
	}
	l.in.Limit = MaxHeader
	l.Hello = Hello{f.Text, f.OK, min(own.Lease, max(time.Duration(f.Size), MinLease))}
	return nil
}

// ErrWantsTLS says that this end does not speak TLS, and the other one speaks nothing else.
var ErrWantsTLS = errors.New("the other end expects TLS")

// wantsTLS is the code of the frame that says so. It comes instead of a hello.
const wantsTLS = 1

// refusePlain answers whoever speaks no TLS to a server that expects it, in plain words.
func refusePlain(err error) {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil {
		plain.Conn.Write(AppendFrame(nil, &Frame{Kind: Refused, Code: wantsTLS}))
	}
}

// Cut ends the connection, without waiting.
func (l *Link) Cut() error { return SocketOf(l.conn).Close() }

func (l *Link) makeAlarms() (err error) {
	if l.tick, err = newAlarm(); err != nil {
		return err
	}
	if l.reading.back, err = newAlarm(); err != nil {
		l.tick.close()
	}
	return err
}

// watchedReader tells watch whether data comes, and whether anybody waits for it.
type watchedReader struct {
	io.Reader
	l *Link
}

func (r watchedReader) Read(b []byte) (n int, err error) {
	r.l.heard.Add(1)
	r.l.AwaitOtherEnd(func() { n, err = r.Reader.Read(b) })
	return n, err
}

// AwaitOtherEnd calls wait, which waits for what only the other end can bring about. That end may
// be found silent meanwhile, unlike while a handler is at work. Who has the right to read calls it.
func (l *Link) AwaitOtherEnd(wait func()) {
	busy := l.busy.Swap(false)
	wait()
	l.busy.Store(busy)
}

// Run serves the connection until it ends, and returns why. Nothing is read, delivered or
// sent any more then.
func (l *Link) Run() error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		if l.out.write() != nil {
			l.Cut()
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
	l.Cut()
	l.out.close()
	<-written
	<-watched
	l.fds.close()
	return err
}

// watch pings, and closes the connection when nothing has come for a lease. While a handler is
// at work nobody listens, and the other end cannot be called silent, unless the handler waits for
// it.
func (l *Link) watch() {
	period := l.Lease / ticksPerLease
	last, silent := uint64(0), 0
	for l.tick.set(period); l.tick.wait(); l.tick.set(period) {
		now := l.heard.Load()
		if silent++; now != last || l.busy.Load() {
			last, silent = now, 0
		}
		if silent >= ticksPerLease {
			l.Cut()
			return
		}
		l.out.ping()
	}
}

// Send sends a frame without data.
func (l *Link) Send(f Frame) { l.SendData(f, nil, nil) }

// SendData sends a frame with the data of its extents, and reports whether it has copied the
// data. If not, that must not change until sent is called, which may be nil otherwise. Data
// is copied up to InlineLimit, and in answers only while few wait to be read.
func (l *Link) SendData(f Frame, data []byte, sent func()) (copied bool) {
	if n := f.DataLength(); n == 0 || n <= InlineLimit && (!f.isAnswer() || l.out.weight() < MaxCopied) {
		l.out.sendCopy(&f, data)
		return true
	}
	header := AppendFrame(nil, &f)
	parts := net.Buffers{header}
	for _, e := range f.Extents {
		parts = append(parts, data[e.Offset:e.Offset+e.Length])
	}
	l.out.send(message{parts: parts, fd: -1, weight: weigh(&f, len(header)), sent: sent})
	return false
}

// SendDescriptor sends a frame without data and a descriptor, which it closes then.
func (l *Link) SendDescriptor(f Frame, fd int) {
	l.out.send(message{
		parts: net.Buffers{AppendFrame(nil, &f)}, fd: fd, weight: descriptorWeight, sent: func() { closeDescriptor(fd) },
	})
}

// SendsDescriptors reports whether descriptors can go over the connection.
func (l *Link) SendsDescriptors() bool { return l.fds != nil }

// Unread returns how many bytes of answers the other end has asked for and not read.
func (l *Link) Unread() int { return l.out.weight() }

func (l *Link) handle(f *Frame) error {
	handler := l.handlers.Answered
	switch {
	case f.Kind == Ping:
		return nil // hearing it is what counts
	case f.isAnswer():
	case f.Kind <= Sync && l.handlers.Asked != nil:
		l.out.awaitRoom()
		handler = l.handlers.Asked
	default:
		return fmt.Errorf("%w: kind %d is not expected", ErrMalformed, f.Kind)
	}
	l.busy.Store(true)
	defer l.busy.Store(false)
	return handler(f)
}

// Read reads data of the frame that is handled.
func (l *Link) Read(b []byte) (int, error) { return l.in.In.Read(b) }

// ReadInto reads the data of the frame that is handled into where its extents say.
func (l *Link) ReadInto(data []byte) error {
	for _, e := range l.frame.Extents {
		if _, err := io.ReadFull(l.in.In, data[e.Offset:e.Offset+e.Length]); err != nil {
			return err
		}
	}
	return nil
}

// Skip reads the data of the frame that is handled, which nobody wants.
func (l *Link) Skip() error {
	_, err := io.CopyN(io.Discard, l.in.In, int64(l.frame.DataLength()))
	return err
}

// TakeDescriptor returns the oldest descriptor that came, which is the caller's from then on.
func (l *Link) TakeDescriptor() (int, error) { return l.fds.take() }

// OnThisMachine reports whether an address can be reached from this machine only.
func OnThisMachine(a net.Addr) bool {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	return a.Network() == "unix" || a.Network() == "pipe"
}

// SocketOf returns the connection below TLS. Closing that never waits for the other end.
func SocketOf(conn net.Conn) net.Conn {
	if c, ok := conn.(*tls.Conn); ok {
		return c.NetConn()
	}
	return conn
}
