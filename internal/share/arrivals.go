package share

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"fairway/internal/cache"
	"fairway/lib/sched"
)

// Arrivals are the files that a pilot is bringing into its cache, for those that read
// them meanwhile. Any goroutine may call its methods.
type Arrivals struct {
	sched    *sched.Scheduler
	patience time.Duration // BeginTime, but for tests

	mu      sync.Mutex // guards what follows, and the fields of arrivals
	files   map[cache.Ref]*Arrival
	changed chan struct{} // closed when a file begins to arrive, or came without that
}

// NewArrivals returns Arrivals without any file.
func NewArrivals(s *sched.Scheduler) *Arrivals {
	return &Arrivals{sched: s, patience: BeginTime, files: map[cache.Ref]*Arrival{}, changed: make(chan struct{})}
}

// Arrival is one file. Begin, Write and End are for who brings it.
type Arrival struct {
	all  *Arrivals
	item cache.Item

	// Guarded by the mutex of all.
	file    *os.File      // what is written; nil while nobody may look at it
	before  []*os.File    // what was begun before it, for those that have sent some of that
	at      int64         // so many bytes of it are there
	ended   bool          // it is in the cache, or is not coming
	hash    cache.Hash    // once it has ended: what it was found to be; zero: it is not there
	changed chan struct{} // closed at the next change
}

// Add says that a file is being brought in.
func (as *Arrivals) Add(i cache.Item) *Arrival {
	a := &Arrival{all: as, item: i, changed: make(chan struct{})}
	as.mu.Lock()
	defer as.mu.Unlock()
	as.files[i.Ref] = a
	as.lookAgain()
	return a
}

// Came says that a file was found in the cache that was to be brought in: another pilot of the
// host has brought it.
func (as *Arrivals) Came() {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.lookAgain()
}

// lookAgain wakes who waits for a file. The caller holds the mutex.
func (as *Arrivals) lookAgain() {
	close(as.changed)
	as.changed = make(chan struct{})
}

// Begin gives the file that is written from now on, from its beginning. It stays open
// until the arrival ends, or another one is begun.
func (a *Arrival) Begin(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	a.all.mu.Lock()
	defer a.all.mu.Unlock()
	a.change(func() {
		if a.file != nil {
			a.before = append(a.before, a.file)
		}
		a.file, a.at = f, 0
	})
	return f, nil
}

// Write writes to the file what comes, until the end, and tells of it as it comes. It writes
// all of it to sum too, after that, and returns how many bytes that are. TLS gives 16 KiB at
// a time, and what is told wakes every pilot after this one, so it gathers them for up to
// passTime.
func (a *Arrival) Write(to *os.File, from io.Reader, sum io.Writer) (size int64, err error) {
	buffer := make([]byte, piece)
	var mu sync.Mutex  // guards what follows; only this goroutine changes end
	var start, end int // the part of the buffer that is not in the file yet
	var full []byte    // what is in the file of the buffer, and not in the sum
	var failed error
	pass := func() {
		if failed == nil && start < end {
			if _, failed = to.Write(buffer[start:end]); failed == nil {
				a.wrote(end - start)
			}
		}
		start = end
	}
	wait := time.AfterFunc(passTime, func() {
		mu.Lock()
		defer mu.Unlock()
		pass()
	})
	defer wait.Stop()
	for err == nil {
		var n int
		n, err = from.Read(buffer[end:])
		size += int64(n)
		mu.Lock()
		if start == end {
			wait.Reset(passTime)
		}
		if end += n; end >= len(buffer)/2 || err != nil {
			pass()
			full, start, end = buffer[:end], 0, 0
		}
		if failed != nil {
			err = failed
		}
		mu.Unlock()
		_, _ = sum.Write(full)
		full = nil
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return size, err
}

func (a *Arrival) wrote(n int) {
	a.all.mu.Lock()
	defer a.all.mu.Unlock()
	a.change(func() { a.at += int64(n) })
}

// Came is how many bytes have come.
func (a *Arrival) Came() int64 {
	a.all.mu.Lock()
	defer a.all.mu.Unlock()
	return a.at
}

// End says that the file is in the cache and has this hash, or, with zero, that it does not
// come.
func (a *Arrival) End(hash cache.Hash) {
	as := a.all
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.files[a.item.Ref] == a {
		delete(as.files, a.item.Ref)
	}
	a.change(func() { a.ended, a.hash = true, hash; a.closeFiles() })
}

func (a *Arrival) closeFiles() {
	for _, f := range append(a.before, a.file) {
		_ = f.Close() // of nil, too
	}
	a.file, a.before = nil, nil
}

// change wakes who waits. The caller holds the mutex.
func (a *Arrival) change(what func()) {
	what()
	close(a.changed)
	a.changed = make(chan struct{})
}

// find returns a file that is in the cache, or how it arrives. It waits for one of both; where
// neither comes it returns nil twice.
func (as *Arrivals) find(ctx context.Context, c *cache.Cache, ref cache.Ref) (*cache.File, *Arrival) {
	waiting, cancel := context.WithTimeout(ctx, as.patience)
	defer cancel()
	for {
		as.mu.Lock()
		a, changed := as.files[ref], as.changed
		as.mu.Unlock()
		if f, held := c.Get(ctx, cache.Item{Ref: ref}); held {
			return f, nil
		}
		if a != nil {
			return nil, a
		}
		if _, err := sched.Receive(waiting, as.sched, changed); !errors.Is(err, sched.ErrChannelClosed) {
			return nil, nil
		}
	}
}

// errEnded says that an arrival has ended.
var errEnded = errors.New("the file does not arrive any more")

// readAt reads what is there from a place on. It waits for the first byte of it, and
// ends with errEnded when the arrival does. It returns the file too, which is another one
// when the arrival was begun anew.
func (a *Arrival) readAt(ctx context.Context, p []byte, from int64) (int, *os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, StallTime)
	defer cancel()
	for {
		a.all.mu.Lock()
		if a.ended {
			a.all.mu.Unlock()
			return 0, nil, errEnded
		}
		n, changed := min(int64(len(p)), a.at-from), a.changed
		file := a.file
		a.all.mu.Unlock()
		if n > 0 {
			got, err := file.ReadAt(p[:n], from)
			if errors.Is(err, os.ErrClosed) {
				continue // it has ended
			}
			return got, file, err
		}
		if _, err := sched.Receive(ctx, a.all.sched, changed); !errors.Is(err, sched.ErrChannelClosed) {
			return 0, nil, err
		}
	}
}

// result waits for the end of an arrival, and is its hash.
func (a *Arrival) result(ctx context.Context) cache.Hash {
	ctx, cancel := context.WithTimeout(ctx, StallTime)
	defer cancel()
	for {
		a.all.mu.Lock()
		ended, hash, changed := a.ended, a.hash, a.changed
		a.all.mu.Unlock()
		if ended {
			return hash
		}
		if _, err := sched.Receive(ctx, a.all.sched, changed); !errors.Is(err, sched.ErrChannelClosed) {
			return cache.Hash{}
		}
	}
}
