package orwl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// resumeAfter is how long nobody may read a connection before its own
// goroutine does so again. A task that waits without reading itself makes it
// resume at once.
const resumeAfter = time.Millisecond

// reading is the right to read a connection. Its own goroutine has it in
// general. After it has delivered the only grant that anybody waited for, it
// leaves the right to the task: the task is likely to make the next request and
// then reads the answer itself, which saves a change of goroutines and threads.
type reading struct {
	right  chan struct{} // has a token while nobody reads
	kick   chan struct{} // asks the connection's goroutine to go on
	turns  *atomic.Uint64
	failed chan error // what ended the connection while a task read it
}

func newReading() reading {
	r := reading{right: make(chan struct{}, 1), kick: make(chan struct{}, 1), turns: new(atomic.Uint64), failed: make(chan error, 1)}
	r.right <- struct{}{}
	return r
}

// resume has the connection's goroutine read.
func (r *reading) resume() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// attend reads until the connection ends.
func (l *link) attend() error {
	r := &l.reading
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	for {
		select {
		case err := <-r.failed:
			return ended(err)
		case <-r.right:
		}
		for served := false; !served; {
			var err error
			if served, err = l.next(); err != nil {
				return ended(err)
			}
		}
		r.right <- struct{}{}
		l.leaveToTasks(pause)
	}
}

// next handles one frame, for who has the right to read, and reports whether it was the grant that tasks
// waited for, and nothing else is to be expected.
func (l *link) next() (served bool, err error) {
	var f frame
	if f, l.scratch, err = readFrame(l.in, l.scratch); err == nil {
		err = l.handle(&f)
	}
	return f.kind == frameGranted && l.session == nil && l.in.Buffered() == 0 && l.peer.idle(), err
}

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("connection ended: %w", ErrLeaseLost)
	}
	return fmt.Errorf("%w: %w", err, ErrLeaseLost)
}

// leaveToTasks returns when somebody asks for it or tasks have stopped reading.
func (l *link) leaveToTasks(pause *time.Timer) {
	r := &l.reading
	for last := r.turns.Load(); ; {
		pause.Reset(resumeAfter)
		select {
		case <-r.kick:
			return
		case <-pause.C:
		}
		now := r.turns.Load()
		if now == last {
			return
		}
		last = now
	}
}

// park waits for a token of a handle of this connection, and reads meanwhile
// when nobody else does. A task that can be interrupted does not read.
func (l *link) park(ctx context.Context, token <-chan struct{}) error {
	if ctx != context.Background() {
		l.reading.resume()
		return park(ctx, token)
	}
	select {
	case <-token:
		return nil
	case <-l.reading.right:
	}
	err := l.readUntil(token)
	if err != nil {
		select {
		case l.reading.failed <- err:
		default: // another task has said so
		}
	}
	l.reading.right <- struct{}{}
	if err != nil || !l.peer.idle() {
		l.reading.resume()
	}
	<-token // there is one, or there will be when the connection has ended
	return nil
}

// readUntil handles frames until there is a token.
func (l *link) readUntil(token <-chan struct{}) error {
	l.reading.turns.Add(1)
	for len(token) == 0 {
		if _, err := l.next(); err != nil {
			return err
		}
	}
	return nil
}
