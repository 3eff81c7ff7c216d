package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A transfer has stalled when it brings less than StallBytes in StallTime.
const (
	StallTime  = time.Minute
	StallBytes = 1 << 10
)

type stallTime struct{}

// WithStallTime has what is read with the context stall after another time than StallTime.
func WithStallTime(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, stallTime{}, limit)
}

// StallError says that a transfer has stalled. It may go well another time.
type StallError struct {
	PFN   string
	After time.Duration // 0 stands for StallTime
}

func (e *StallError) Error() string {
	return fmt.Sprintf("%s: the transfer brought less than %d bytes in %s", e.PFN, StallBytes, cmp.Or(e.After, StallTime))
}

// Timeout and Temporary make it a net.Error.
func (e *StallError) Timeout() bool { return true }

// Temporary is part of net.Error.
func (e *StallError) Temporary() bool { return true }

// steady is a body that ends with a StallError when nothing comes. Time counts only
// while somebody waits for more.
type steady struct {
	io.ReadCloser
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	pfn    string
	limit  time.Duration
	waited time.Duration // since enough has come
	came   int           // since then
	all    *atomic.Int64 // what has come from the beginning on; nil: nobody asks
}

type cameBytes struct{}

// WithCame is a context for transfers that add to a counter what comes from servers of files, as it comes:
// also what comes twice, where a transfer is begun anew.
func WithCame(ctx context.Context, came *atomic.Int64) context.Context {
	return context.WithValue(ctx, cameBytes{}, came)
}

// Steady decorates the body of a transfer so that reading it ends with a
// StallError when nothing comes. ctx is that of the transfer, and cancel ends it.
func Steady(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser, pfn string) io.ReadCloser {
	limit, other := ctx.Value(stallTime{}).(time.Duration)
	if !other {
		limit = StallTime
	}
	all, _ := ctx.Value(cameBytes{}).(*atomic.Int64)
	return &steady{ReadCloser: body, ctx: ctx, cancel: cancel, pfn: Shown(pfn), limit: limit, all: all}
}

func (s *steady) Read(p []byte) (int, error) {
	began := time.Now()
	alarm := time.AfterFunc(s.limit-s.waited, func() { s.cancel(&StallError{s.pfn, s.limit}) })
	moved := moving(s.ctx)
	n, err := s.ReadCloser.Read(p)
	moved()
	alarm.Stop()
	s.came += n
	if s.all != nil {
		s.all.Add(int64(n))
	}
	s.waited += time.Since(began)
	if s.came >= StallBytes {
		s.came, s.waited = 0, 0
	}
	if err != nil && !errors.Is(err, io.EOF) && context.Cause(s.ctx) != nil {
		err = context.Cause(s.ctx)
	}
	return n, err
}

func (s *steady) Close() error {
	s.cancel(context.Canceled)
	return s.ReadCloser.Close()
}

// Watched is the body of something that is sent: when nobody takes more of it for
// StallTime, cancel ends the transfer with a StallError. Time counts from the
// first piece on, and ends with the last one. ctx is that of the transfer.
func Watched(ctx context.Context, cancel context.CancelCauseFunc, body io.Reader, pfn string) io.ReadCloser {
	return &watched{Reader: body, ctx: ctx, cancel: cancel, pfn: Shown(pfn)}
}

type watched struct {
	io.Reader
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	pfn    string

	mu    sync.Mutex // guards what follows: the body is closed by another goroutine
	alarm *time.Timer
	moved func() // while there is an alarm
}

func (w *watched) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alarm != nil {
		w.alarm.Stop()
		w.moved()
		w.alarm, w.moved = nil, nil
	}
}

func (w *watched) Read(p []byte) (int, error) {
	w.stop()
	n, err := w.Reader.Read(p)
	if err == nil {
		w.mu.Lock()
		w.alarm, w.moved = time.AfterFunc(StallTime, func() { w.cancel(&StallError{PFN: w.pfn}) }), moving(w.ctx)
		w.mu.Unlock()
	}
	return n, err
}

func (w *watched) Close() error {
	w.stop()
	return nil
}
