package transport

import (
	"bytes"
	"net"
	"sync"
)

// InlineLimit is the size up to which data is copied into the message, which the
// goroutine that sends it writes itself as far as the socket takes it at once.
const InlineLimit = 16 << 10

// message is a frame on its way, with data that must not change until sent is
// called.
type message struct {
	parts  net.Buffers
	fd     int // a descriptor that goes with it, or -1
	weight int // bytes that count as unread until they are sent
	sent   func()
}

// MaxUnread bounds what the other end has asked for and does not read, in bytes. Beyond it
// nothing more that it asks is looked at, so that its connection ends with the lease.
const MaxUnread = 16 << 20

// MaxCopied bounds the data of grants that is copied into messages which wait. Beyond it
// the location keeps its data unchanged until the message has left.
const MaxCopied = 1 << 20

// descriptorWeight is so that few descriptors wait to be sent.
const descriptorWeight = MaxUnread / 16

// weigh counts answers. What this process asks or releases is its own affair: if it counted,
// two processes that send each other much would wait for each other.
func weigh(f *Frame, bytes int) int {
	if f.isAnswer() {
		return bytes
	}
	return 0
}

// outbox sends messages in their order without making the sender wait. It
// holds at most one message for each request of the connection, those that
// open and settle, and one ping.
type outbox struct {
	conn  net.Conn
	quick *quickWriter // nil where it cannot be had

	mu     sync.Mutex
	ready  sync.Cond
	room   sync.Cond // unread has become less, or closed
	queue  []message
	unread int  // weight of all messages that have not left
	busy   bool // the writer is at work
	closed bool
	copied []byte // for sendCopy
}

func newOutbox(conn net.Conn) *outbox {
	o := &outbox{conn: conn, quick: newQuickWriter(conn)}
	o.ready.L, o.room.L = &o.mu, &o.mu
	return o
}

// send hands over a message. After close its sent function is called at once.
func (o *outbox) send(m message) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		m.done()
		return
	}
	o.queueLocked(m)
	o.mu.Unlock()
}

func (o *outbox) queueLocked(m message) {
	o.queue = append(o.queue, m)
	o.unread += m.weight
	o.ready.Signal()
}

// weight is that of all messages that have not left.
func (o *outbox) weight() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.unread
}

// awaitRoom waits until the other end has read enough of what it asked for, or will not any
// more.
func (o *outbox) awaitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.unread > MaxUnread && !o.closed {
		o.room.Wait()
	}
}

// sendCopy sends a frame with a copy of the data of its extents.
func (o *outbox) sendCopy(f *Frame, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	b := AppendFrame(o.copied[:0], f)
	for _, e := range f.Extents {
		b = append(b, data[e.Offset:e.Offset+e.Length]...)
	}
	if cap(b) <= 2*InlineLimit {
		o.copied = b
	}
	if o.quick != nil && !o.busy && len(o.queue) == 0 {
		b = b[o.quick.write(b):]
	}
	if len(b) > 0 {
		o.queueLocked(message{parts: net.Buffers{bytes.Clone(b)}, fd: -1, weight: weigh(f, len(b))})
	}
}

// ping says that this process lives, unless something waits to leave: that says so, too. So
// pings do not gather for an end that does not read. One goroutine calls it.
func (o *outbox) ping() {
	o.mu.Lock()
	waits := o.busy || len(o.queue) > 0
	o.mu.Unlock()
	if !waits {
		o.sendCopy(&Frame{Kind: Ping}, nil)
	}
}

func (m message) done() {
	if m.sent != nil {
		m.sent()
	}
}

// write sends what is queued until close or an error.
func (o *outbox) write() error {
	for {
		o.mu.Lock()
		o.busy = false
		for len(o.queue) == 0 && !o.closed {
			o.ready.Wait()
		}
		if o.closed {
			o.mu.Unlock()
			return nil
		}
		batch := o.queue
		o.queue, o.busy = nil, true
		o.mu.Unlock()
		for i, m := range batch {
			err := o.writeOne(m)
			o.mu.Lock()
			o.unread -= m.weight
			o.room.Signal()
			o.mu.Unlock()
			m.done()
			if err != nil {
				for _, rest := range batch[i+1:] {
					rest.done()
				}
				return err
			}
		}
	}
}

func (o *outbox) writeOne(m message) error {
	if m.fd >= 0 {
		n, err := sendDescriptor(o.conn, m.parts[0], m.fd)
		if err != nil {
			return err
		}
		m.parts[0] = m.parts[0][n:]
	}
	_, err := m.parts.WriteTo(o.conn)
	return err
}

// close drops what is queued.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	rest := o.queue
	o.queue = nil
	o.ready.Broadcast()
	o.room.Broadcast()
	o.mu.Unlock()
	for _, m := range rest {
		m.done()
	}
}
