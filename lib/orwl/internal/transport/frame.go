package transport

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"fairway/lib/fifo"
	"fairway/lib/orwl/internal/memory"
)

// Limits of the protocol. A frame beyond them ends the connection.
const (
	// MaxHeader bounds a frame without the data that follows it.
	MaxHeader = 1 << 20
	// MaxExtents bounds the pieces of data in a frame; data in more pieces is
	// sent whole.
	MaxExtents = memory.MaxExtents
	// MaxText bounds a name or a message in a frame, in bytes. Longer messages are cut. Who
	// sends a name sees to it that it is shorter.
	MaxText = 1 << 10
	// MaxDescriptors bounds the descriptors that came and were not taken yet. An end that keeps
	// to the protocol has at most two on their way. More end the connection.
	MaxDescriptors = 16
)

// maxHello bounds the first frame, before anything is known of the other end.
const maxHello = 4 << 10

// Kind says what a frame is.
type Kind uint8

// A connection has two directions of use: one end asks for locations that the
// other owns, and the other way round.
const (
	// From the end that asks.
	Open    Kind = iota + 1 // id: the mirror; text: the location; ok: also where another mirror of it is open; mode: Write where the memory can be mapped
	Request                 // id; mirror, mode, rank; text: the task
	Cancel                  // id
	Release                 // id, generation; next: the request to post before; size, extents, data: what changed
	Reserve                 // id: the reservation; requests; ok: the last frame of those, which come one after the other
	Settle                  // id; ok: keep
	Sync                    // id
	// From the owner.
	Opened   // id; text: refusal; next: the mirror that is open already; mirror: the number of the location; size: the limit; ok: the memory is shared, and a descriptor of it comes with a grant; mode: Write where it is written in place
	Granted  // id, mirror, generation, version, size, extents, data; ok: a descriptor comes with it, of the memory from now on; text: who released before
	Refused  // id; code, text
	Answered // of a reservation or a sync. id; ok, or code, text: refusal
	// From both.
	Greeting // version: of the protocol; text: who; size: lease in ns; ok: serves locations
	Ping

	lastKind = Ping
)

// Version is that of the protocol. Both ends of a connection must speak the same.
const Version = 6

// Frame is any message. Fields that its kind does not use are zero.
type Frame struct {
	Kind       Kind
	OK         bool
	Mode       fifo.Mode
	Code       uint8 // of an error that a caller decides on; 0 for others
	ID, Next   uint64
	Mirror     uint64
	Generation uint64
	Version    uint64
	Rank       int64
	Size       int64
	Text       string
	Extents    []memory.Extent
	Requests   []Posting
}

// Posting is one request of a Reserve frame.
type Posting struct {
	ID, Mirror uint64
	Mode       fifo.Mode
	Rank       int64
	Task       string
}

// ErrMalformed says that the other end does not keep to the protocol.
var ErrMalformed = errors.New("malformed frame")

// AppendFrame appends the length of the header and the header.
func AppendFrame(b []byte, f *Frame) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, byte(f.Kind), bit(f.OK), byte(f.Mode), f.Code)
	for _, v := range []uint64{f.ID, f.Next, f.Mirror, f.Generation, f.Version} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendVarint(b, f.Rank)
	b = binary.AppendVarint(b, f.Size)
	b = appendText(b, f.Text[:min(len(f.Text), MaxText)])
	b = binary.AppendUvarint(b, uint64(len(f.Extents)))
	for _, e := range f.Extents {
		b = binary.AppendUvarint(b, uint64(e.Offset))
		b = binary.AppendUvarint(b, uint64(e.Length))
	}
	b = binary.AppendUvarint(b, uint64(len(f.Requests)))
	for _, r := range f.Requests {
		b = binary.AppendUvarint(b, r.ID)
		b = binary.AppendUvarint(b, r.Mirror)
		b = append(b, byte(r.Mode))
		b = binary.AppendVarint(b, r.Rank)
		b = appendText(b, r.Task)
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

// Reader reads frames. What it returns is valid until the next call.
type Reader struct {
	In      *bufio.Reader
	Limit   int    // of a header
	long    []byte // a header that the reader cannot hold
	extents []memory.Extent
}

// Next reads one header. The data of its extents comes next.
func (r *Reader) Next(f *Frame) error {
	length, err := r.In.Peek(4)
	if err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint32(length))
	switch {
	case n > r.Limit:
		return fmt.Errorf("%w: a header of %d bytes", ErrMalformed, n)
	case 4+n > r.In.Size():
		return r.nextLong(f, n)
	}
	b, err := r.In.Peek(4 + n)
	if err != nil {
		return err
	}
	if err := r.decode(f, b[4:]); err != nil {
		return err
	}
	_, err = r.In.Discard(4 + n)
	return err
}

func (r *Reader) nextLong(f *Frame, n int) error {
	r.In.Discard(4)
	if cap(r.long) < n {
		r.long = make([]byte, n)
	}
	if _, err := io.ReadFull(r.In, r.long[:n]); err != nil {
		return err
	}
	return r.decode(f, r.long[:n])
}

func (r *Reader) decode(f *Frame, b []byte) (err error) {
	*f, err = decodeFrame(b, r.extents)
	if f.Extents != nil {
		r.extents = f.Extents
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

func (d *decoder) mode() fifo.Mode {
	m := fifo.Mode(d.byte())
	d.bad = d.bad || m > fifo.Write
	return m
}

// decodeFrame may put the extents into what it is given for them.
func decodeFrame(b []byte, extents []memory.Extent) (Frame, error) {
	d := decoder{b: b}
	var f Frame
	f.Kind, f.OK, f.Mode, f.Code = Kind(d.byte()), d.byte() == 1, d.mode(), d.byte()
	f.ID, f.Next, f.Mirror, f.Generation, f.Version = d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint(), d.uvarint()
	f.Rank, f.Size = d.varint(), d.varint()
	f.Text = d.text()
	f.Extents = d.extents(f.Size, extents)
	for range d.count(5) {
		f.Requests = append(f.Requests, Posting{
			ID: d.uvarint(), Mirror: d.uvarint(), Mode: d.mode(), Rank: d.varint(), Task: d.text(),
		})
	}
	if d.bad || len(d.b) > 0 || f.Kind == 0 || f.Kind > lastKind || f.Size < 0 {
		return Frame{}, fmt.Errorf("%w of kind %d", ErrMalformed, f.Kind)
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

// isAnswer reports whether a frame comes from who was asked.
func (f *Frame) isAnswer() bool { return f.Kind >= Opened && f.Kind <= Answered }

// DataLength returns the length in bytes of the data that follows the frame.
func (f *Frame) DataLength() int {
	n := 0
	for _, e := range f.Extents {
		n += e.Length
	}
	return n
}
