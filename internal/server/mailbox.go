package server

import (
	"context"
	"sync"

	"fairway/sched"
)

// mailbox hands work from the loop, which must never block, to the goroutine
// that does it. It has no limit of its own: what can wait in one is bounded by
// the files and pilots of the workflow.
type mailbox[T any] struct {
	ready chan struct{} // holds a token while items is not empty

	mu    sync.Mutex // guards items
	items []T
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{ready: make(chan struct{}, 1)}
}

// put never blocks.
func (m *mailbox[T]) put(items ...T) {
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

// take waits for items and returns all there are, in order. Only one goroutine
// may take.
func (m *mailbox[T]) take(ctx context.Context, s *sched.Scheduler) ([]T, error) {
	if _, err := sched.Receive(ctx, s, m.ready); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	m.items = nil
	return items, nil
}
