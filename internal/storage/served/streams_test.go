package served

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/storage"
)

// A launch that sends requests without end keeps others from nothing.
func TestFloodOfStreams(t *testing.T) {
	open := &slowly{began: make(chan struct{}, 100), goes: make(chan struct{})}
	n := newNode(t, func(c *Config) {
		open.Element = c.Element
		c.Element = open
		c.Streams = 2 * StreamsOfLaunch
	}).listen(t)
	pfn := n.store(t, "x", "contents")
	var group sync.WaitGroup
	flood := n.pilot(t, "flood", nil)
	for range StreamsOfLaunch {
		group.Go(func() {
			if got, err := get(t, flood, pfn); err != nil || got != "contents" {
				t.Error(got, err)
			}
		})
	}
	for range StreamsOfLaunch {
		<-open.began
	}
	ctx, cancel := context.WithCancel(t.Context())
	var told error
	late := n.pilot(t, "flood", nil)
	late.sleep = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	if _, told = late.Stat(ctx, pfn); told == nil || !strings.Contains(told.Error(), "503") {
		t.Error("one more of the same launch:", told)
	}
	open.open.Store(true)
	if got, err := get(t, n.pilot(t, "other", nil), pfn); err != nil || got != "contents" {
		t.Error("another launch:", got, err)
	}
	close(open.goes)
	group.Wait()
	if h := n.handler.Load(); len(h.streams.own) > 0 || !h.streams.all.TryAcquire(2*StreamsOfLaunch) {
		t.Error("streams are still counted:", h.streams.own)
	}
}

// slowly opens files when it is let.
type slowly struct {
	storage.Element
	began, goes chan struct{}
	open        atomic.Bool
}

func (s *slowly) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	if !s.open.Load() {
		s.began <- struct{}{}
		<-s.goes
	}
	return s.Element.Open(ctx, pfn)
}
