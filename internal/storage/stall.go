package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A transfer has stalled when it brings less than StallBytes in StallTime.
const (
	StallTime  = time.Minute
	StallBytes = 1 << 10
)

// StallError says that a transfer has stalled. It may go well another time.
type StallError struct{ PFN string }

func (e *StallError) Error() string {
	return fmt.Sprintf("%s: the server sent less than %d bytes in %s", e.PFN, StallBytes, StallTime)
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
	waited time.Duration // since enough has come
	came   int           // since then
}

func (s *steady) Read(p []byte) (int, error) {
	began := time.Now()
	alarm := time.AfterFunc(StallTime-s.waited, func() { s.cancel(&StallError{s.pfn}) })
	n, err := s.ReadCloser.Read(p)
	alarm.Stop()
	s.came += n
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
