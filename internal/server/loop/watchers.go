package loop

import (
	"sync"
	"sync/atomic"
)

type watchers struct {
	some atomic.Bool // whether anybody waits

	mu      sync.Mutex // guards changed
	changed chan struct{}
}

// Changes returns a channel that is closed at the next change of the run. Who wants
// to miss nothing takes it before looking at the state. Any goroutine may call it.
func (w *watchers) Changes() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.some.Store(true)
	return w.changed
}

// Notify tells of a change. The loop does after each turn that was more than questions;
// others do where the loop does not see it. It costs one load while nobody waits. Any goroutine may call it.
func (w *watchers) Notify() {
	if !w.some.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.some.Store(false)
	close(w.changed)
	w.changed = make(chan struct{})
}
