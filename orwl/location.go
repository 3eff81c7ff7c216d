package orwl

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"fairway/internal/fifo"
)

// Mode says whether a request reads or writes.
type Mode = fifo.Mode

// The two modes of a request.
const (
	Read  = fifo.Read
	Write = fifo.Write
)

// DefaultMaxRequests is the limit of a location's queue unless MaxRequests
// says otherwise. A request beyond it is refused with ErrFull.
const DefaultMaxRequests = 1 << 20

// Resource is what a Handle can request: a Location of this process, or a
// Mirror of one of another process.
type Resource interface {
	// Name returns the name under which the location was made.
	Name() string

	insert(h *Handle, m Mode) error
	// cycle posts next in cur's mode and then releases cur, which it does also
	// when next is refused.
	cycle(cur, next *Handle) error
	release(h *Handle) error
	// withdraw takes a request out of the queue unless it is granted already,
	// and reports whether it did.
	withdraw(h *Handle) bool
	attach(t *Trace)
	// start opens a location that is Gated.
	start()
	view(h *Handle, m Mode) ([]byte, error)
	resize(h *Handle, size int) error
	owner() owner
	key() locationKey
}

// Location is memory with a queue of requests. New makes one; all its methods
// may be called by any goroutine.
type Location struct {
	mu         sync.Mutex
	queue      fifo.Queue[*Handle]
	limit      int
	generation uint64 // of the last grant
	version    uint64 // of the data: counts the writes that were released
	err        error  // poisoned
	latch      *latch
	trace      *Trace
	journal    *journal // not nil once the data goes to other hosts

	name   string
	id     uint64
	memory *memory
	strict bool
	shared bool
	loss   Loss
	moves  uint64 // how often the memory was renewed, under mu
}

var locations atomic.Uint64

// processID names this process among the owners of locations.
var processID = rand.Text()

// An Option changes how New makes a Location.
type Option func(*Location)

// MaxRequests limits the number of queued requests.
func MaxRequests(n int) Option { return func(l *Location) { l.limit = n } }

// StartWith is a start gate for one location: nothing is granted until n
// requests have been inserted, from wherever. They then stand in the order of
// their ranks (see Posting), equal ranks in the order in which they came. So
// tasks in several processes get an initial order without talking to each
// other. When a process is lost before the last request has come, all requests
// fail with ErrAbsentTask.
func StartWith(n int) Option {
	return func(l *Location) {
		if n > 0 {
			l.latch = newLatch()
			l.latch.missing = n
		}
	}
}

// Strict lets a read mapping not be written and no mapping be touched after
// Release, for development: such an access panics, and ExplainFault says whose
// it was. It needs Linux, and costs two system calls for each mapping.
func Strict() Option { return func(l *Location) { l.strict = true } }

// New makes a location of size bytes, all zero. The name is for people, and
// for other processes when the location is served. Its memory is given back when
// nobody refers to it any more, neither a handle nor a server.
func New(name string, size int, options ...Option) (*Location, error) {
	l := &Location{name: name, id: locations.Add(1), limit: DefaultMaxRequests, memory: new(memory)}
	for _, o := range options {
		o(l)
	}
	if err := l.makeMemory(size); err != nil {
		return nil, fmt.Errorf("making location %s: %w", name, err)
	}
	return l, nil
}

func (l *Location) makeMemory(size int) (err error) {
	if l.strict || l.shared {
		if l.memory.file, err = newMemoryFile(l.name); err != nil {
			return err
		}
		runtime.AddCleanup(l, (*memory).close, l.memory)
	}
	return l.memory.resize(size)
}

// Name returns the name under which the location was made.
func (l *Location) Name() string { return l.name }

// Initialize lets write set the data before the location is used: nobody may
// have requested or served it yet.
func (l *Location) Initialize(write func(data []byte)) {
	write(l.memory.bytes)
	runtime.KeepAlive(l)
}

// Version returns the number of writes that changed the data and were released.
func (l *Location) Version() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

// Waiting returns the number of requests in the queue, granted ones included.
func (l *Location) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Len()
}

func (l *Location) refuse(err error) error { return fmt.Errorf("location %s: %w", l.name, err) }

func (l *Location) insert(h *Handle, m Mode) error {
	l.mu.Lock()
	if l.watched() || h.state != idle || h.notify != nil || l.queue.Len() >= l.limit {
		l.mu.Unlock()
		return l.insertRanked(h, m, 0)
	}
	h.res, h.req.Owner = l, h
	if l.queue.Insert(&h.req, m) {
		h.state = held
		l.generation++
		h.generation = l.generation
	} else {
		h.awaits()
	}
	l.mu.Unlock()
	return nil
}

// insertRanked is the general way: for traces, latches, other processes and
// refusals.
func (l *Location) insertRanked(h *Handle, m Mode, rank int) error {
	l.mu.Lock()
	err := l.insertLocked(h, m, rank)
	immediate := err == nil && h.unnoticed()
	l.mu.Unlock()
	if immediate {
		h.notify(h)
	}
	return err
}

// insertLocked puts h at the end of the queue, or behind the latch. The rank
// counts only before the start.
func (l *Location) insertLocked(h *Handle, m Mode, rank int) error {
	if err := l.admit(h); err != nil {
		return l.refuse(err)
	}
	h.res, h.req.Owner = l, h
	if l.trace != nil {
		l.trace.requested(h, l.name, m)
	}
	if l.latch != nil {
		l.postponeLocked(h, m, rank)
		return nil
	}
	if l.queue.Insert(&h.req, m) {
		h.state = held
		l.granted(h, nil)
	} else {
		h.awaits()
	}
	return nil
}

func (l *Location) admit(h *Handle) error {
	switch {
	case h.state != idle:
		return ErrBusy
	case l.err != nil:
		return l.err
	case l.queue.Len() >= l.limit || l.latch != nil && len(l.latch.postponed) >= l.limit:
		return ErrFull
	}
	return nil
}

var nobody Handle

// granted records a grant; by is whose release it follows, if any.
func (l *Location) granted(h, by *Handle) {
	l.generation++
	h.generation = l.generation
	if by == nil {
		by = &nobody
	}
	if h.traced != nil {
		h.traced.grant(by.Name)
	}
	if h.notify != nil {
		h.by = by.Name
	}
}

func (l *Location) cycle(cur, next *Handle) error {
	l.mu.Lock()
	if cur.state != held {
		l.mu.Unlock()
		return l.refuse(ErrNotHeld)
	}
	if l.watched() || next.state != idle || l.queue.Len() >= l.limit {
		err := l.insertLocked(next, cur.req.Mode(), 0)
		wake := l.releaseLocked(cur)
		immediate := err == nil && next.unnoticed()
		l.mu.Unlock()
		wake.up()
		if immediate {
			next.notify(next)
		}
		return err
	}
	if cur.mapped {
		l.unmap(cur)
	}
	next.res, next.req.Owner = l, next
	cur.state = idle
	first := l.queue.Cycle(&cur.req, &next.req)
	if h := ownerOf(first); h != next && h != nil && first.NextGranted() == nil && h.notify == nil {
		// The usual case: the turn passes to one other task.
		l.generation++
		h.generation, h.state = l.generation, held
		next.awaits()
		l.mu.Unlock()
		h.token <- struct{}{}
		return nil
	}
	wake := l.grantLocked(first, cur)
	if next.state != held {
		next.awaits()
	} else if next.notify != nil {
		wake.add(next)
	}
	l.mu.Unlock()
	wake.up()
	return nil
}

func ownerOf(r *fifo.Request[*Handle]) *Handle {
	if r == nil {
		return nil
	}
	return r.Owner
}

// watched reports whether requests take the slow path.
func (l *Location) watched() bool { return l.latch != nil || l.trace != nil || l.err != nil }

func (l *Location) release(h *Handle) error {
	l.mu.Lock()
	if h.state != held {
		l.mu.Unlock()
		return l.refuse(ErrNotHeld)
	}
	if h.mapped || l.trace != nil || l.queue.Len() > 1 {
		wake := l.releaseLocked(h)
		l.mu.Unlock()
		wake.up()
		return nil
	}
	h.state = idle
	l.queue.Release(&h.req)
	l.mu.Unlock()
	return nil
}

func (l *Location) releaseLocked(h *Handle) wakeList {
	if h.mapped {
		l.unmap(h)
	}
	h.traced.end()
	h.state = idle
	return l.grantLocked(l.queue.Release(&h.req), h)
}

// unmap ends the mappings of h and, where they could change the data, makes
// the new version.
func (l *Location) unmap(h *Handle) {
	h.mapped = false
	if h.wrote {
		h.wrote = false
		l.version++
		l.note(h)
	}
	if len(h.views) > 0 {
		retireViews(h)
	}
}

// note keeps what changed in the version that h made.
func (l *Location) note(h *Handle) {
	switch {
	case l.journal == nil:
	case h.pieces != nil:
		l.journal.wrote(l.memory.bytes, h.pieces, l.version)
	default:
		l.journal.commit(l.memory.bytes, l.version)
	}
	h.pieces = nil
}

// grantLocked marks the requests from first on as granted and returns those
// whose tasks sleep.
func (l *Location) grantLocked(first *fifo.Request[*Handle], by *Handle) wakeList {
	var wake wakeList
	for r := first; r != nil; r = r.NextGranted() {
		l.grantOne(r.Owner, by, &wake)
	}
	return wake
}

func (l *Location) grantOne(h, by *Handle, wake *wakeList) {
	l.granted(h, by)
	if h.state == waiting {
		wake.add(h)
	}
	h.state = held
}

func (l *Location) withdraw(h *Handle) bool {
	l.mu.Lock()
	if h.state != waiting {
		l.mu.Unlock()
		return false
	}
	wake := l.takeOutLocked(h)
	l.mu.Unlock()
	wake.up()
	return true
}

// holds reports whether h, which belongs to another process, has the lock.
func (l *Location) holds(h *Handle) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.state == held
}

// takeOutLocked removes the request of h from the queue or from those
// postponed.
func (l *Location) takeOutLocked(h *Handle) wakeList {
	h.traced.end()
	h.state = idle
	if !h.req.Queued() {
		l.latch.forget(h)
		return wakeList{}
	}
	return l.grantLocked(l.queue.Cancel(&h.req), h)
}

func (l *Location) view(h *Handle, m Mode) ([]byte, error) {
	if m == Write {
		if h.req.Mode() != Write {
			return nil, l.refuse(ErrReadOnly)
		}
		h.wrote = true
	}
	h.mapped = true
	if l.strict {
		b, err := strictMapping(l.memory.file, len(l.memory.bytes), h, l.name, m)
		if err != nil {
			return nil, l.refuse(err)
		}
		return b, nil
	}
	return l.memory.bytes, nil
}

func (l *Location) owner() owner { return localOwner{} }

func (l *Location) key() locationKey { return locationKey{processID, l.id} }

func (l *Location) resize(h *Handle, size int) error {
	if h.req.Mode() != Write {
		return l.refuse(ErrReadOnly)
	}
	h.mapped, h.wrote = true, true
	if err := l.memory.resize(size); err != nil {
		return fmt.Errorf("resizing location %s to %d bytes: %w", l.name, size, err)
	}
	return nil
}
