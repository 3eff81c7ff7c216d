package loop

import (
	"context"
	"sync"

	"fairway/lib/sched"
)

// Mailbox hands work from the loop, which must never block, to the goroutine
// that does it. It has no limit of its own: what can wait in one is bounded by
// the files and pilots of the workflow.
type Mailbox[T any] struct {
	ready chan struct{} // holds a token while items is not empty

	mu    sync.Mutex // guards items
	items []T
}

// NewMailbox makes an empty one.
func NewMailbox[T any]() *Mailbox[T] {
	return &Mailbox[T]{ready: make(chan struct{}, 1)}
}

// Put never blocks.
func (m *Mailbox[T]) Put(items ...T) {
	if len(items) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items = append(m.items, items...)
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// Take waits for items and returns all there are, in order. Only one goroutine
// may take.
func (m *Mailbox[T]) Take(ctx context.Context, s *sched.Scheduler) ([]T, error) {
	if _, err := sched.Receive(ctx, s, m.ready); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items, nil
}
