package orwl

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"fairway/lib/fifo"
	"fairway/lib/orwl/internal/memory"
)

// Mode reports whether a request reads or writes.
type Mode = fifo.Mode

// The two modes of a request.
const (
	Read  = fifo.Read
	Write = fifo.Write
)

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
	// park waits for a token of h, or the end of ctx.
	park(ctx context.Context, h *Handle) error
	// polled follows a Test that found h waiting.
	polled(h *Handle)
	// withdraw takes a request out of the queue unless it is granted already,
	// and reports whether it did.
	withdraw(h *Handle) bool
	attach(t *Trace)
	// generationOf returns the number of the grant that h has.
	generationOf(h *Handle) uint64
	view(h *Handle, m Mode) ([]byte, error)
	resize(h *Handle, size int) error
	owner() owner
	key() locationKey
}

// Location is memory with a queue of requests. New makes one; all its methods
// may be called by any goroutine. It must not be copied, which go vet tells: a copy has a queue of
// its own, and the same memory.
type Location struct {
	// The word says who has the lock where nobody meets: queue.go. The version of the data counts
	// the writes that were released; who holds the write lock raises it.
	word    atomic.Pointer[Handle]
	slots   *[readerSlots]readerSlot // for readers.go; made before the word says reading first, and kept
	version atomic.Uint64

	// The queue has every request that is granted or waits, unless the word has the only one or
	// the latch keeps it back. A request is at one of these three places, and its handle's
	// state says granted exactly where it shares the head of the queue or is in the word. The
	// generation is that of the last grant, and never falls. Whoever holds mu owns all of this
	// once the queue is engaged.
	mu         sync.Mutex
	queue      fifo.Queue[*Handle]
	arriving   int // requests of an insertion that is about to be admitted; 0 without mu
	limit      int // for life
	calm       int // how often in a row a request was released that nobody had met
	reads      int // how many reads in a row were granted at once beside others
	generation uint64
	err        error   // why all requests fail, for ever; nil while they do not
	latch      *latch  // nil where nothing is kept back
	first      *Handle // that of the first request, after a start with StartWith; for checkpoints
	trace      *Trace
	// The journal is there once the data has gone to another host, for life. The memory changes
	// under the write lock only; it is freed with the location.
	journal *memory.Journal
	memory  *memory.Region

	// These are as New made them.
	name   string
	id     uint64
	strict bool
	shared bool
	loss   Loss
}

var locations atomic.Uint64

// processID names this process among the owners of locations.
var processID = rand.Text()

// ProcessName returns the name under which other processes know this one: that of
// Peer.Name at the other end of its connections, for Server.Peer there. It is random, and
// different in each process.
func ProcessName() string { return processID }

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
// for other processes when the location is served; a longer one than MaxName is
// refused, and so is a size that the machine does not give. Its memory is given back when
// nobody refers to it any more, neither a handle nor a server.
func New(name string, size int, options ...Option) (*Location, error) {
	l := &Location{name: name, id: locations.Add(1), limit: DefaultMaxRequests, memory: new(memory.Region)}
	for _, o := range options {
		o(l)
	}
	if l.latch != nil && l.latch.starts() && l.latch.missing > l.limit {
		return nil, fmt.Errorf("making location %s: it would never start: StartWith waits for %d requests, MaxRequests "+
			"allows %d", name, l.latch.missing, l.limit)
	}
	if len(name) > MaxName {
		return nil,
			fmt.Errorf("making location %.32q…: the name has %d bytes, and at most %d are allowed: give a shorter one", name,
				len(name), MaxName)
	}
	if err := l.makeMemory(size); err != nil {
		return nil, fmt.Errorf("making location %s: %w", name, err)
	}
	if !l.simple() {
		l.word.Store(queueing)
	}
	return l, nil
}

func (l *Location) makeMemory(size int) (err error) {
	if !l.strict && !l.shared {
		return l.memory.Resize(size)
	}
	if *l.memory, err = memory.NewInFile(l.name, size); err != nil {
		return err
	}
	runtime.AddCleanup(l, (*memory.Region).Close, l.memory)
	return nil
}

// Name returns the name under which the location was made.
func (l *Location) Name() string { return l.name }

// Initialize lets write set the data before the location is used: nobody may
// have requested or served it yet.
func (l *Location) Initialize(write func(data []byte)) {
	write(l.memory.Bytes)
	runtime.KeepAlive(l)
}

// Version returns the number of writes that changed the data and were released.
func (l *Location) Version() uint64 { return l.version.Load() }

// Waiting returns the number of requests that stand at the location, granted ones
// included, and those that wait for its start.
func (l *Location) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.word.Load() {
	case nil:
		return 0
	case queueing:
		return l.standingLocked()
	case reading:
		return l.queue.Len() + l.inSlots()
	}
	return 1
}

func (l *Location) generationOf(h *Handle) uint64 {
	l.lock()
	defer l.mu.Unlock()
	return h.generation
}

func (l *Location) refuse(err error) error { return fmt.Errorf("location %s: %w", l.name, err) }

func (l *Location) view(h *Handle, m Mode) ([]byte, error) {
	if l.memory == nil { // New has not made it
		return nil, l.refuse(ErrNothing)
	}
	if m == Write {
		if h.mode != Write {
			return nil, l.refuse(ErrReadOnly)
		}
		h.wrote = true
	}
	h.mapped = true
	if l.strict {
		b, err := strictMapping(l.memory.File, len(l.memory.Bytes), h, l.name, m)
		if err != nil {
			return nil, l.refuse(err)
		}
		return b, nil
	}
	if l.memory.File != nil {
		pin(h)
	}
	return l.memory.Bytes, nil
}

func (l *Location) owner() owner { return localOwner{} }

func (l *Location) key() locationKey { return locationKey{processID, l.id} }

func (l *Location) resize(h *Handle, size int) error {
	switch {
	case l.memory == nil:
		return l.refuse(ErrNothing)
	case h.mode != Write:
		return l.refuse(ErrReadOnly)
	}
	h.mapped, h.wrote = true, true
	if err := l.memory.Resize(size); err != nil {
		return l.refuse(fmt.Errorf("resizing: %w", err))
	}
	return nil
}
