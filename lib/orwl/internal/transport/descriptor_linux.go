package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// quickWriter writes to a socket what it takes without waiting. One goroutine
// at a time may use it.
type quickWriter struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // writes from b, and counts in n
	b   []byte
	n   int
}

// newQuickWriter returns nil where conn is no socket of its own.
func newQuickWriter(conn net.Conn) *quickWriter {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	w := &quickWriter{raw: raw}
	w.try = func(fd uintptr) bool {
		w.n, _ = unix.Write(int(fd), w.b)
		return true
	}
	return w
}

// write returns how much was written. Why it is less than all shows whoever
// writes the rest.
func (w *quickWriter) write(b []byte) int {
	w.b, w.n = b, 0
	w.raw.Write(w.try)
	w.b = nil
	return max(w.n, 0)
}

// sendDescriptor sends bytes of b, at least one, and a descriptor with them.
func sendDescriptor(conn net.Conn, b []byte, fd int) (int, error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("sending a descriptor needs a Unix socket")
	}
	n, _, err := c.WriteMsgUnix(b, unix.UnixRights(fd), nil)
	return n, err
}

// descriptorReader reads from a Unix socket and keeps the descriptors that
// come.
type descriptorReader struct {
	conn *net.UnixConn
	fds  []int
}

func newReader(conn net.Conn) (io.Reader, *descriptorReader) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return conn, nil
	}
	r := &descriptorReader{conn: c}
	return r, r
}

func (r *descriptorReader) Read(b []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*MaxDescriptors))
	n, oobn, flags, _, err := r.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return 0, err
	}
	if oobn > 0 {
		if err := r.takeDescriptors(oob[:oobn]); err != nil {
			return n, err
		}
	}
	if flags&unix.MSG_CTRUNC != 0 {
		return n, fmt.Errorf("%w: too many descriptors at once", ErrMalformed)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *descriptorReader) takeDescriptors(oob []byte) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("control message: %w", err)
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fmt.Errorf("control message: %w", err)
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
		}
		r.fds = append(r.fds, fds...)
	}
	if len(r.fds) > MaxDescriptors {
		return fmt.Errorf("%w: too many descriptors", ErrMalformed)
	}
	return nil
}

// take returns the oldest descriptor, which is the caller's from then on.
func (r *descriptorReader) take() (int, error) {
	if r == nil || len(r.fds) == 0 {
		return -1, fmt.Errorf("%w: a descriptor is missing", ErrMalformed)
	}
	fd := r.fds[0]
	r.fds = r.fds[1:]
	return fd, nil
}

func closeDescriptor(fd int) { unix.Close(fd) }

func (r *descriptorReader) close() {
	if r == nil {
		return
	}
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	r.fds = nil
}
