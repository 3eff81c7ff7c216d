package orwl

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"fairway/orwl/internal/memory"
)

// Limits of the protocol. A frame beyond them ends the connection.
const (
	// MaxHeader bounds a frame without the data that follows it.
	MaxHeader = 1 << 20
	// MaxExtents bounds the pieces of data in a frame; data in more pieces is
	// sent whole.
	MaxExtents = memory.MaxExtents
	// MaxText bounds a name or a message in a frame, in bytes. Names are bounded by MaxName
	// before they are sent, and longer messages are cut.
	MaxText = 1 << 10
)

// maxHello bounds the first frame, before anything is known of the other end.
const maxHello = 4 << 10

type frameKind uint8

// A connection has two directions of use: one end asks for locations that the
// other owns, and the other way round.
const (
	// From the end that asks.
	frameOpen    frameKind = iota + 1 // id: the mirror; text: the location; ok: also where another mirror of it is open; mode: Write where the memory can be mapped
	frameRequest                      // id; mirror, mode, rank; text: the task
	frameCancel                       // id
	frameRelease                      // id, generation; next: the request to post before; size, extents, data: what changed
	frameReserve                      // id: the reservation; requests; ok: the last frame of those, which come one after the other
	frameSettle                       // id; ok: keep
	frameSync                         // id
	// From the owner.
	frameOpened   // id; text: refusal; next: the mirror that is open already; mirror: the number of the location; size: the limit; ok: the memory is shared, and a descriptor of it comes with a grant; mode: Write where it is written in place
	frameGranted  // id, mirror, generation, version, size, extents, data; ok: a descriptor comes with it, of the memory from now on; text: who released before
	frameRefused  // id; code, text
	frameAnswered // of a reservation or a sync. id; ok, or code, text: refusal
	// From both.
	frameHello // version: of the protocol; text: who; size: lease in ns; ok: serves locations
	framePing

	lastFrame = framePing
)

const protocolVersion = 6

// frame is any message. Fields that its kind does not use are zero.
type frame struct {
	kind       frameKind
	ok         bool
	mode       Mode
	code       errorCode
	id, next   uint64
	mirror     uint64
	generation uint64
	version    uint64
	rank       int64
	size       int64
	text       string
	extents    []memory.Extent
	requests   []wireRequest
}

type wireRequest struct {
	id, mirror uint64
	mode       Mode
	rank       int64
	task       string
}

// checkName refuses a name that no peer takes.
func checkName(what, name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("%s has %d bytes, and another process takes at most %d: %w", what, len(name), MaxName, ErrTooLarge)
	}
	return nil
}

// cutText makes a text fit.
func cutText(text string) string { return text[:min(len(text), MaxText)] }

// errFrame says that the other end does not keep to the protocol.
var errFrame = errors.New("malformed frame")

// appendFrame appends the length of the header and the header.
func appendFrame(b []byte, f *frame) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, byte(f.kind), bit(f.ok), byte(f.mode), byte(f.code))
	for _, v := range []uint64{f.id, f.next, f.mirror, f.generation, f.version} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendVarint(b, f.rank)
	b = binary.AppendVarint(b, f.size)
	b = appendText(b, f.text)
	b = binary.AppendUvarint(b, uint64(len(f.extents)))
	for _, e := range f.extents {
		b = binary.AppendUvarint(b, uint64(e.Offset))
		b = binary.AppendUvarint(b, uint64(e.Length))
	}
	b = binary.AppendUvarint(b, uint64(len(f.requests)))
	for _, r := range f.requests {
		b = binary.AppendUvarint(b, r.id)
		b = binary.AppendUvarint(b, r.mirror)
		b = append(b, byte(r.mode))
		b = binary.AppendVarint(b, r.rank)
		b = appendText(b, r.task)
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// frameReader reads frames. What it returns is valid until the next call.
type frameReader struct {
	in      *bufio.Reader
	limit   int    // of a header
	long    []byte // a header that the reader cannot hold
	extents []memory.Extent
}

// next reads one header. The data of its extents comes next.
func (r *frameReader) next(f *frame) error {
	length, err := r.in.Peek(4)
	if err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint32(length))
	switch {
	case n > r.limit:
		return fmt.Errorf("%w: a header of %d bytes", errFrame, n)
	case 4+n > r.in.Size():
		return r.nextLong(f, n)
	}
	b, err := r.in.Peek(4 + n)
	if err != nil {
		return err
	}
	if err := r.decode(f, b[4:]); err != nil {
		return err
	}
	_, err = r.in.Discard(4 + n)
	return err
}

func (r *frameReader) nextLong(f *frame, n int) error {
	r.in.Discard(4)
	if cap(r.long) < n {
		r.long = make([]byte, n)
	}
	if _, err := io.ReadFull(r.in, r.long[:n]); err != nil {
		return err
	}
	return r.decode(f, r.long[:n])
}

func (r *frameReader) decode(f *frame, b []byte) (err error) {
	*f, err = decodeFrame(b, r.extents)
	if f.extents != nil {
		r.extents = f.extents
	}
	return err
}

// decoder takes a header apart. The first failure sticks.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of things that take at least size bytes each.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/size) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count(1)
	d.bad = d.bad || n > MaxText
	if d.bad {
		return ""
	}
	text := string(d.b[:n])
	d.b = d.b[n:]
	return text
}

func (d *decoder) mode() Mode {
	m := Mode(d.byte())
	d.bad = d.bad || m > Write
	return m
}

// decodeFrame may put the extents into what it is given for them.
func decodeFrame(b []byte, extents []memory.Extent) (frame, error) {
	d := decoder{b: b}
	var f frame
	f.kind, f.ok, f.mode, f.code = frameKind(d.byte()), d.byte() == 1, d.mode(), errorCode(d.byte())
	f.id, f.next, f.mirror, f.generation, f.version = d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint()
	f.rank, f.size = d.varint(), d.varint()
	f.text = d.text()
	f.extents = d.extents(f.size, extents)
	for range d.count(5) {
		f.requests = append(f.requests, wireRequest{id: d.uvarint(), mirror: d.uvarint(), mode: d.mode(), rank: d.varint(), task: d.text()})
	}
	if d.bad || len(d.b) > 0 || f.kind == 0 || f.kind > lastFrame || f.size < 0 {
		return frame{}, fmt.Errorf("%w of kind %d", errFrame, f.kind)
	}
	return f, nil
}

// extents reads pieces in ascending order that lie within size.
func (d *decoder) extents(size int64, extents []memory.Extent) []memory.Extent {
	n := d.count(2)
	if n == 0 {
		return nil
	}
	extents = slices.Grow(extents[:0], n)
	end := uint64(0)
	for range n {
		offset, length := d.uvarint(), d.uvarint()
		if offset < end || length > uint64(size) || offset > uint64(size)-length {
			d.bad = true
			return nil
		}
		extents = append(extents, memory.Extent{Offset: int(offset), Length: int(length)})
		end = offset + length
	}
	return extents
}

func (f *frame) dataLength() int {
	n := 0
	for _, e := range f.extents {
		n += e.Length
	}
	return n
}

// errorCode carries the errors that a caller decides on to other processes.
type errorCode uint8

var wireErrors = []error{nil, ErrFull, ErrPoisoned, ErrStale, ErrUnknown, ErrTooLarge, ErrAbsentTask, ErrTooManyMirrors, ErrBusy}

func codeOf(err error) errorCode {
	for i, e := range wireErrors[1:] {
		if errors.Is(err, e) {
			return errorCode(i + 1)
		}
	}
	return 0
}

// remoteError is an error that another process reported.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

func (f *frame) error() error {
	e := &remoteError{text: f.text}
	if int(f.code) < len(wireErrors) {
		e.is = wireErrors[f.code]
	}
	return e
}
