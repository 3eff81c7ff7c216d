package served

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Bounds of a handler.
const (
	// DefaultStreams is Config.Streams where it is not given.
	DefaultStreams = 64
	// StreamsOfLaunch is how many requests of one launch work or wait at a time:
	// twice the transfers of a pilot (storage.DefaultTransfers), which also looks
	// at files. Further ones are told to come back.
	StreamsOfLaunch = 16
	// QueueTime is how long a request waits for others before it is told to come
	// back.
	QueueTime = 10 * time.Second
	// ComeBack is when it is to come back, at the earliest.
	ComeBack = time.Second
)

// streams bounds the requests that work at a time, and those of one launch.
type streams struct {
	all *semaphore.Weighted // in the order in which they came

	mu  sync.Mutex // guards own
	own map[string]int
}

// enter waits for its turn; false says that it did not come.
func (s *streams) enter(ctx context.Context, launch string) (leave func(), ok bool) {
	if !s.count(launch) {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, QueueTime)
	defer cancel()
	if s.all.Acquire(ctx, 1) != nil {
		s.discount(launch)
		return nil, false
	}
	return func() { s.all.Release(1); s.discount(launch) }, true
}

func (s *streams) count(launch string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[launch] >= StreamsOfLaunch {
		return false
	}
	s.own[launch]++
	return true
}

func (s *streams) discount(launch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[launch]--; s.own[launch] == 0 {
		delete(s.own, launch)
	}
}
