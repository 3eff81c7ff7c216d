package sched

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/lib/sched/internal/processors"
)

// Config holds what a person may want to change. The zero value is good.
type Config struct {
	// Slots is the number of tasks that compute at once. Zero means as many as
	// the process may use processors, following the limit of its cgroup.
	Slots int
	// Spare is the number of Ps the Go runtime gets besides the slots while
	// tasks compute: one for what reacts, the others for tasks that run over
	// the number of slots. Zero means a quarter of the slots, but at least 2.
	Spare int
	// Tasks bounds the tasks that exist at once; one more is refused. Zero
	// means DefaultTasks.
	Tasks int
	// Priorities says how computing threads are told from others.
	Priorities Priorities
	// Threads bounds the threads that block in callbacks at the same time.
	// Requests beyond are polled if their kind can be, and wait for a thread
	// otherwise. Zero means DefaultThreads.
	Threads int
	// IdlePolling is the share of one processor that polling without a pause (Kind.Eager) may
	// take in the long run, 0.1 for a tenth. Where it is used up, kinds are polled at their
	// Interval. Zero means DefaultIdlePolling, more than 1 means 1, and negative none at all.
	IdlePolling float64
	// FileInterval is how often files are looked at that the system tells
	// nothing about. Zero means DefaultFileInterval.
	FileInterval time.Duration
	// Log takes the few messages there are. Nil means slog.Default().
	Log *slog.Logger
}

// DefaultThreads bounds the threads blocked in callbacks when Config doesn't.
const DefaultThreads = 64

// Scheduler detects events and hands out slots. Its methods may be called from
// any goroutine.
type Scheduler struct {
	config  Config
	log     *slog.Logger
	epoch   time.Time
	chosen  int // processors that a person allows the process; 0: what the system does
	pool    pool
	poller  poller
	tender  atomic.Pointer[tender] // nil if there is nothing to look after; changed under mu
	slots   slots
	tasks   sync.WaitGroup
	closing chan struct{} // closed when Close begins
	drained chan struct{} // closed when the last task has ended after that
	over    chan struct{} // closed when Close is done
	builtin builtin

	mu          sync.Mutex
	sources     []*source
	closed      bool
	active      int    // tasks
	admitted    uint64 // tasks that have ever been
	prepared    bool   // for tasks
	reacting    bool
	saidStalled sync.Once
	priorities  *priorities // nil before the first task or React
}

// New makes a scheduler. It starts no goroutine before something is waited for
// or computed.
func New(c Config) *Scheduler {
	c.Threads = positive(c.Threads, DefaultThreads)
	c.Tasks = positive(c.Tasks, DefaultTasks)
	c.FileInterval = positive(c.FileInterval, DefaultFileInterval)
	s := &Scheduler{config: c, log: c.Log, epoch: time.Now(), chosen: processors.Chosen()}
	s.closing, s.drained, s.over = make(chan struct{}), make(chan struct{}), make(chan struct{})
	if s.log == nil {
		s.log = slog.Default()
	}
	s.pool.free = c.Threads
	s.poller.s, s.poller.newNapper = s, newNapper
	s.poller.poke = make(chan struct{}, 1)
	s.poller.next.Store(math.MaxInt64)
	s.poller.allowance.share = min(positive(c.IdlePolling, DefaultIdlePolling), 1)
	if c.IdlePolling < 0 {
		s.poller.allowance.share = 0
	}
	return s
}

func positive[N int | float64 | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

// Default returns the scheduler of the process. It is made on first use and
// never closed.
func Default() *Scheduler { return standard() }

var standard = sync.OnceValue(func() *Scheduler { return New(Config{}) })

// Close ends all waits with [ErrClosed], refuses further ones and further tasks, waits until the
// tasks that there are have ended, those too that had no slot yet, and the callbacks have come to
// an end, and frees what kinds hold. The process has the Ps and the time slices again that it had
// before. No task may call it, as it would wait for itself; called by a callback, it waits for
// nothing. Closing again waits for the same.
func (s *Scheduler) Close() { _ = s.Shutdown(context.Background()) }

// Shutdown does what Close does, and waits for it until ctx ends. Its error then
// wraps that of ctx and says what still runs. That goes on, nothing is
// freed before it has ended, and Shutdown may be called again. Called by a callback, it
// begins to shut down and returns [ErrCallback].
func (s *Scheduler) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	sources := slices.Clone(s.sources)
	s.mu.Unlock()
	if first {
		close(s.closing)
		for _, src := range sources {
			src.fail(ErrClosed)
		}
		go s.finish()
	}
	if isClosed(s.over) {
		return nil
	}
	if fromCallback() {
		return fmt.Errorf("shut down the scheduler, with %s still running: %w", s.whatRuns(), ErrCallback)
	}
	select {
	case <-s.over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("shut down the scheduler, with %s still running: %w", s.whatRuns(), ctx.Err())
	}
}

// whatRuns says what the end of a scheduler that is closed waits for.
func (s *Scheduler) whatRuns() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := counted(s.active, "task")
	for _, src := range s.sources {
		if !isClosed(src.rested) {
			text += ", callbacks of " + src.name
		}
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// finish frees everything when the last task has ended.
func (s *Scheduler) finish() {
	defer close(s.over)
	s.tasks.Wait()
	close(s.drained)
	s.pool.close()
	s.mu.Lock()
	sources := slices.Clone(s.sources)
	s.mu.Unlock()
	for _, src := range sources {
		<-src.rested
	}
	processors.Want(s, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.priorities.rest()
}

// removeSource forgets a kind that has been closed.
func (s *Scheduler) removeSource(src *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.sources, src); i >= 0 {
		s.sources = slices.Delete(s.sources, i, i+1)
	}
}

// addSource makes a kind known, and reports whether the scheduler is closed.
func (s *Scheduler) addSource(src *source) (closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, src)
	return s.closed
}

// since converts to nanoseconds since the epoch, which fit into an atomic.
func (s *Scheduler) since(t time.Time) int64 { return int64(t.Sub(s.epoch)) }

// now is the time since the epoch.
func (s *Scheduler) now() int64 { return s.since(time.Now()) }
