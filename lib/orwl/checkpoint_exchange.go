package orwl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"fairway/lib/orwl/internal/checkpoint"
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
func (c *Checkpoints) openExchange(ctx context.Context) (*checkpoint.Whole, Resource, error) {
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
	a, err := x.ask(ctx, checkpoint.Message{Kind: checkpoint.AskState})
	if err != nil {
		return nil, nil, err
	}
	if a.Iteration == 0 {
		return nil, plan, nil
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(&pieceReader{ctx: ctx, exchange: x}), nil }
	return &checkpoint.Whole{Iteration: int(a.Iteration), Sum: a.Part(), Open: open}, plan, nil
}

// store makes the part of this task durable in the folder of task 0.
func (x *exchange) store(c *Checkpoints, iteration int) error {
	w := &pieceWriter{ctx: c.ctx, exchange: x, iteration: uint64(iteration)}
	sum, err := checkpoint.WritePart(c.ctx, w, c.covered)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return err
	}
	q := checkpoint.Message{Kind: checkpoint.GavePart, Iteration: uint64(iteration)}
	q.SetPart(sum)
	_, err = x.ask(c.ctx, q)
	return err
}

// ask asks task 0. What the answer has is valid until the next question.
func (x *exchange) ask(ctx context.Context, q checkpoint.Message) (a checkpoint.Message, err error) {
	x.number++
	q.Number = x.number
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
	case a.Number != q.Number:
		return a, fmt.Errorf("task 0 has not answered: %w", ErrLeaseLost)
	case a.Kind == checkpoint.Refused:
		return a, fmt.Errorf("task 0: %.200s", a.Data)
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
		a, err := r.exchange.ask(r.ctx, checkpoint.Message{Kind: checkpoint.AskPiece, Offset: r.offset})
		if err != nil {
			return 0, err
		}
		if len(a.Data) == 0 {
			return 0, io.EOF
		}
		r.offset += uint64(len(a.Data))
		r.rest.Reset(bytes.Clone(a.Data))
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
		fits := min(len(b)-n, checkpoint.PieceSize-len(w.piece))
		w.piece = append(w.piece, b[n:n+fits]...)
		n += fits
		if len(w.piece) == checkpoint.PieceSize {
			err = w.flush()
		}
	}
	return n, err
}

func (w *pieceWriter) flush() error {
	if len(w.piece) == 0 {
		return nil
	}
	_, err := w.exchange.ask(w.ctx, checkpoint.Message{
		Kind: checkpoint.GivePiece, Iteration: w.iteration, Offset: w.offset, Data: w.piece,
	})
	w.offset += uint64(len(w.piece))
	w.piece = w.piece[:0]
	return err
}

// writeMessage writes a message to a location that is held for writing.
func writeMessage(p *Pair, m checkpoint.Message) error {
	if err := p.Resize(m.Length()); err != nil {
		return err
	}
	b, err := p.WriteMap()
	if err == nil {
		m.Put(b)
	}
	return err
}

// readMessage reads one, whose data is valid as that of the lock.
func readMessage(p *Pair) (m checkpoint.Message, err error) {
	b, err := p.ReadMap()
	if err != nil {
		return m, err
	}
	return checkpoint.ParseMessage(b)
}
