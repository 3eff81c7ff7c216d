package loop

import (
	"sync"
	"sync/atomic"
)

// watchers are the goroutines that want to know when something changed.
type watchers struct {
	some atomic.Bool // whether anybody waits

	mu      sync.Mutex // guards changed
	changed chan struct{}
}

func newWatchers() *watchers { return &watchers{changed: make(chan struct{})} }

// next returns a channel that is closed at the next change. Who wants to miss
// nothing takes it before looking at the state.
func (w *watchers) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.some.Store(true)
	return w.changed
}

// notify is called by the loop after each turn; it costs one load while nobody
// waits.
func (w *watchers) notify() {
	if !w.some.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.some.Store(false)
	close(w.changed)
	w.changed = make(chan struct{})
}
