package storage

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// What elements of a network are given to Retry.
const (
	DefaultTries   = 4
	DefaultBackoff = 200 * time.Millisecond
	// MaxRetryAfter bounds how long a server may have itself waited for.
	MaxRetryAfter = time.Minute
)

type retrying struct {
	Element
	tries   int
	backoff time.Duration
	sleep   Sleep
}

// Sleep waits for a time, or until ctx ends and then returns an error.
type Sleep func(ctx context.Context, d time.Duration) error

// Retry decorates an element so that each operation is tried up to tries times
// when the network or the server fails. The pause before the next try is backoff,
// doubled each time, and between half of that and all of it by chance, so that
// many clients of one server do not come back together. It is no shorter than the
// server says (Retry-After), up to MaxRetryAfter. Open is tried again until
// it returns a reader; what is read from it is not.
func Retry(e Element, tries int, backoff time.Duration, sleep Sleep) Element {
	return &retrying{e, tries, backoff, sleep}
}

// Temporary reports whether after this error the same operation may go well later.
func Temporary(err error) bool {
	var told interface{ Temporary() bool }
	if errors.As(err, &told) && told.Temporary() {
		return true
	}
	var status *StatusError
	var network net.Error
	// io.EOF is what a connection ends with that brought no answer at all.
	return !errors.As(err, &status) && errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF)
}

// told is how long the server wants to be left alone.
func told(err error) time.Duration {
	var server interface{ RetryAfter() time.Duration }
	if errors.As(err, &server) {
		return min(server.RetryAfter(), MaxRetryAfter)
	}
	return 0
}

// isSilence reports whether a server gave no answer in time, other than in the middle of a
// transfer.
func isSilence(err error) bool {
	var network net.Error
	var stall *StallError
	return errors.As(err, &network) && network.Timeout() && !errors.As(err, &stall)
}

func (r *retrying) do(ctx context.Context, operation func() error) error {
	pause := r.backoff
	for try, silent := 1, time.Duration(0); ; try++ {
		began := time.Now()
		err := operation()
		if isSilence(err) {
			silent += time.Since(began)
		}
		if err == nil || try >= r.tries || ctx.Err() != nil || !Temporary(err) || silent >= AwayTime {
			return err
		}
		if r.sleep(ctx, max(pause/2, told(err))+rand.N(pause/2+1)) != nil {
			return err
		}
		pause *= 2
	}
}

func (r *retrying) Open(ctx context.Context, pfn string) (body io.ReadCloser, err error) {
	err = r.do(ctx, func() error { body, err = r.Element.Open(ctx, pfn); return err })
	return body, err
}

func (r *retrying) Get(ctx context.Context, pfn, path string) (size int64, err error) {
	err = r.do(ctx, func() error { size, err = r.Element.Get(ctx, pfn, path); return err })
	return size, err
}

func (r *retrying) Put(ctx context.Context, path, pfn string) error {
	return r.do(ctx, func() error { return r.Element.Put(ctx, path, pfn) })
}

func (r *retrying) Stat(ctx context.Context, pfn string) (info Info, err error) {
	err = r.do(ctx, func() error { info, err = r.Element.Stat(ctx, pfn); return err })
	return info, err
}

func (r *retrying) Remove(ctx context.Context, pfn string) error {
	return r.do(ctx, func() error { return r.Element.Remove(ctx, pfn) })
}

func (r *retrying) List(ctx context.Context, pfn string) (entries []Entry, err error) {
	err = r.do(ctx, func() error { entries, err = r.Element.List(ctx, pfn); return err })
	return entries, err
}
