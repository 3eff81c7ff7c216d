package sched

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Config holds what a person may want to change. The zero value is good.
type Config struct {
	// Slots is the number of tasks that compute at once. Zero means as many as
	// the process may use processors, following the limit of its cgroup.
	Slots int
	// Spare is the number of Ps the Go runtime gets besides the slots while
	// tasks compute. Zero means as many as slots, but at least 2.
	Spare int
	// Threads bounds the threads that block in callbacks at the same time.
	// Requests beyond are polled if their kind can be, and wait for a thread
	// otherwise. Zero means DefaultThreads.
	Threads int
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
	log    *slog.Logger
	epoch  time.Time
	pool   pool
	server server

	mu      sync.Mutex
	sources []*source
	closers []func()
	closed  bool

	builtin      builtin
	fileInterval time.Duration
}

// New makes a scheduler. It starts no goroutine before something is waited for.
func New(c Config) *Scheduler {
	s := &Scheduler{log: c.Log, epoch: time.Now(), fileInterval: c.FileInterval}
	if s.fileInterval <= 0 {
		s.fileInterval = DefaultFileInterval
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.pool.free = c.Threads
	if s.pool.free <= 0 {
		s.pool.free = DefaultThreads
	}
	s.server.s = s
	s.server.poke = make(chan struct{}, 1)
	return s
}

// Default returns the scheduler of the process. It is made on first use and
// never closed.
var Default = sync.OnceValue(func() *Scheduler { return New(Config{}) })

// Close ends all waits with [ErrClosed], waits until callbacks and goroutines of
// the scheduler have come to an end, and frees what kinds hold.
func (s *Scheduler) Close() {
	s.mu.Lock()
	sources, closers := s.sources, s.closers
	s.closed, s.closers = true, nil
	s.mu.Unlock()
	for _, src := range sources {
		src.fail(ErrClosed)
	}
	s.pool.close()
	for _, c := range closers {
		c()
	}
}

func (s *Scheduler) addSource(src *source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources = append(s.sources, src)
	if s.closed {
		src.broken = ErrClosed
	}
}

// onClose has f called at the end of Close, or now if that is over.
func (s *Scheduler) onClose(f func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.closers = append(s.closers, f)
	}
	s.mu.Unlock()
	if closed {
		f()
	}
}

// since and at convert between times and nanoseconds since the epoch, which fit
// into an atomic.
func (s *Scheduler) since(t time.Time) int64 { return int64(t.Sub(s.epoch)) }
func (s *Scheduler) at(ns int64) time.Time   { return s.epoch.Add(time.Duration(ns)) }

// pause gives the slot of ctx's task back; the function it returns takes one
// again.
func (s *Scheduler) pause(ctx context.Context) func(*entry) { return func(*entry) {} }
