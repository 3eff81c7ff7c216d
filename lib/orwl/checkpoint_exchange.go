package orwl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// exchange is how a task other than 0 reaches the vault: by a connection of its own, so that what is
// saved does not stand before what the program exchanges.
type exchange struct {
	peer   *Peer
	pair   Pair // in turn with task 0; held between two questions
	number uint64
}

func talkName(task int) string { return fmt.Sprintf("checkpoints of task %d", task) }

// openExchange connects to the vault, and asks what there is of this task.
func (c *Checkpoints) openExchange(ctx context.Context) (*wholePart, Resource, error) {
	g := c.member.gang
	addresses := g.addresses(1)
	if addresses == nil {
		return nil, nil, errors.New("the tasks have one port each, and checkpoints need a second one")
	}
	peer, err := c.member.reach(ctx, addresses[0])
	if err != nil {
		return nil, nil, fmt.Errorf("task 0: %w", err)
	}
	x := &exchange{peer: peer}
	c.exch = x
	plan, err := peer.Mirror(ctx, "plan of checkpoints")
	if err != nil {
		return nil, nil, err
	}
	talk, err := peer.Mirror(ctx, talkName(g.Task))
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(Insert(ctx, x.pair.Writing(talk).At(0)), x.pair.Acquire(ctx)); err != nil {
		return nil, nil, err
	}
	a, err := x.ask(ctx, message{kind: askState})
	if err != nil {
		return nil, nil, err
	}
	if a.iteration == 0 {
		return nil, plan, nil
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(&pieceReader{ctx: ctx, exchange: x}), nil }
	return &wholePart{iteration: int(a.iteration), sum: a.part(), open: open}, plan, nil
}

// store makes the part of this task durable in the folder of task 0.
func (x *exchange) store(c *Checkpoints, iteration int) error {
	w := &pieceWriter{ctx: c.ctx, exchange: x, iteration: uint64(iteration)}
	sum, err := writePart(c.ctx, w, c.covered)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return err
	}
	q := message{kind: gavePart, iteration: uint64(iteration)}
	q.setPart(sum)
	_, err = x.ask(c.ctx, q)
	return err
}

// ask asks task 0. What the answer has is valid until the next question.
func (x *exchange) ask(ctx context.Context, q message) (a message, err error) {
	x.number++
	q.number = x.number
	if err := writeMessage(&x.pair, q); err != nil {
		return a, err
	}
	if err := errors.Join(x.pair.Release(), x.pair.Acquire(ctx)); err != nil {
		return a, err
	}
	a, err = readMessage(&x.pair)
	switch {
	case err != nil:
		return a, err
	case a.number != q.number:
		return a, fmt.Errorf("task 0 has not answered: %w", ErrLeaseLost)
	case a.kind == refused:
		return a, fmt.Errorf("task 0: %.200s", a.data)
	}
	return a, nil
}

// pieceReader reads the part of this task from task 0.
type pieceReader struct {
	ctx      context.Context
	exchange *exchange
	offset   uint64
	rest     bytes.Reader
}

func (r *pieceReader) Read(b []byte) (int, error) {
	if r.rest.Len() == 0 {
		a, err := r.exchange.ask(r.ctx, message{kind: askPiece, offset: r.offset})
		if err != nil {
			return 0, err
		}
		if len(a.data) == 0 {
			return 0, io.EOF
		}
		r.offset += uint64(len(a.data))
		r.rest.Reset(bytes.Clone(a.data))
	}
	return r.rest.Read(b)
}

// pieceWriter sends a part to task 0, in pieces of one size.
type pieceWriter struct {
	ctx       context.Context
	exchange  *exchange
	iteration uint64
	offset    uint64
	piece     []byte
}

func (w *pieceWriter) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		fits := min(len(b)-n, pieceSize-len(w.piece))
		w.piece = append(w.piece, b[n:n+fits]...)
		n += fits
		if len(w.piece) == pieceSize {
			err = w.flush()
		}
	}
	return n, err
}

func (w *pieceWriter) flush() error {
	if len(w.piece) == 0 {
		return nil
	}
	_, err := w.exchange.ask(w.ctx, message{kind: givePiece, iteration: w.iteration, offset: w.offset, data: w.piece})
	w.offset += uint64(len(w.piece))
	w.piece = w.piece[:0]
	return err
}

// Kinds of messages between a task and the vault.
const (
	askState  uint64 = iota + 1 // from which checkpoint does the gang go on?
	askPiece                    // what is at an offset of my part of it?
	givePiece                   // this is at an offset of my part of a new one
	gavePart                    // my part is complete, with this size and sum
	refused                     // the answer is an error, as text
)

// message is a question or an answer.
type message struct {
	number, kind, iteration, offset uint64
	size, sum                       uint64 // of a part
	data                            []byte
}

// numbers are what a message begins with, as it stands in the location.
func (m *message) numbers() []*uint64 {
	return []*uint64{&m.number, &m.kind, &m.iteration, &m.offset, &m.size, &m.sum}
}

const messageHead = 6 * 8 // bytes

func (m *message) setPart(s partSum) { m.size, m.sum = uint64(s.Size), uint64(s.CRC32C) }

func (m *message) part() partSum { return partSum{int64(min(m.size, 1<<62)), uint32(m.sum)} }

// writeMessage writes a message to a location that is held for writing.
func writeMessage(p *Pair, m message) error {
	if err := p.Resize(messageHead + len(m.data)); err != nil {
		return err
	}
	b, err := p.WriteMap()
	if err != nil {
		return err
	}
	for i, n := range m.numbers() {
		binary.LittleEndian.PutUint64(b[8*i:], *n)
	}
	copy(b[messageHead:], m.data)
	return nil
}

// readMessage reads one, whose data is valid as that of the lock.
func readMessage(p *Pair) (m message, err error) {
	b, err := p.ReadMap()
	if err != nil {
		return m, err
	}
	return parseMessage(b)
}

func parseMessage(b []byte) (m message, err error) {
	if len(b) < messageHead || len(b) > messageHead+pieceSize {
		return m, fmt.Errorf("a message has %d bytes", len(b))
	}
	for i, n := range m.numbers() {
		*n = binary.LittleEndian.Uint64(b[8*i:])
	}
	m.data = b[messageHead:]
	return m, nil
}
