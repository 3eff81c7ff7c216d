package transport

import (
	"sync/atomic"
	"time"
)

// resumeAfter is how long nobody may read a connection before its own
// goroutine does so again. A task that waits without reading itself makes it
// resume at once.
const resumeAfter = 5 * time.Millisecond

// reading is the right to read a connection. Its own goroutine has it in
// general. After it has delivered the only grant that anybody waited for, it
// leaves the right to the task: the task is likely to make the next request and
// then reads the answer itself, which saves a change of goroutines and threads.
type reading struct {
	right  chan struct{} // has a token while nobody reads
	away   atomic.Bool   // the connection's goroutine leaves reading to tasks
	back   *alarm        // wakes it to read again
	turns  atomic.Uint64
	failed chan error // what ended the connection while a task read it
}

func newReading() *reading {
	r := &reading{right: make(chan struct{}, 1), failed: make(chan error, 1)}
	r.right <- struct{}{}
	return r
}

// resume has the connection's goroutine read.
func (r *reading) resume() {
	if r.away.CompareAndSwap(true, false) {
		r.back.set(time.Nanosecond)
	}
}

// attend reads until the connection ends.
func (l *Link) attend() error {
	r := l.reading
	for {
		select {
		case err := <-r.failed:
			return err
		case <-r.right:
			// A task that failed has said so before it gave the right back.
			select {
			case err := <-r.failed:
				return err
			default:
			}
		}
		for leaves := false; !leaves; {
			last, err := l.next()
			if err != nil {
				return err
			}
			leaves = last && l.leaves()
		}
		r.right <- struct{}{}
		r.leaveToTasks()
	}
}

// leaves reports whether the connection's goroutine goes, unless a request
// waits. One that comes later finds it away and can have it resume.
func (l *Link) leaves() bool {
	l.reading.away.Store(true)
	if l.handlers.Idle() {
		return true
	}
	l.reading.away.Store(false)
	return false
}

// next handles one frame, for who has the right to read, and reports whether it
// may be the last for a while: a grant, on a connection where the other end asks
// for nothing.
func (l *Link) next() (last bool, err error) {
	f := &l.frame
	if err = l.in.Next(f); err == nil {
		err = l.handle(f)
	}
	return f.Kind == Granted && l.handlers.Asked == nil && l.in.In.Buffered() == 0, err
}

// leaveToTasks returns when somebody asks for it or tasks have stopped reading.
func (r *reading) leaveToTasks() {
	for last := r.turns.Load(); ; {
		r.back.set(resumeAfter)
		if !r.away.Load() { // asked for before the alarm was set
			return
		}
		r.back.wait()
		now := r.turns.Load()
		if now == last || !r.away.Load() {
			r.away.Store(false)
			return
		}
		last = now
	}
}

// Resume has the connection's own goroutine read, for a task that waits or tests without
// reading itself.
func (l *Link) Resume() { l.reading.resume() }

// Await waits for a token that somebody sends when a request is decided or the connection has
// ended, and reads meanwhile when nobody else does.
func (l *Link) Await(token <-chan struct{}) {
	select {
	case <-token:
		return
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
	if err != nil || !l.handlers.Idle() {
		l.reading.resume()
	}
	<-token // there is one, or there will be when the connection has ended
}

// readUntil handles frames until there is a token.
func (l *Link) readUntil(token <-chan struct{}) error {
	l.reading.turns.Add(1)
	for len(token) == 0 {
		if _, err := l.next(); err != nil {
			return err
		}
	}
	return nil
}
