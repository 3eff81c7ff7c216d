package storage

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// What [New] gives to Retry.
const (
	DefaultTries   = 4
	DefaultBackoff = 200 * time.Millisecond
)

type retrying struct {
	Element
	tries   int
	backoff time.Duration
	sleep   Sleep
}

// Sleep waits for a time, or until ctx ends and then returns an error.
type Sleep func(ctx context.Context, d time.Duration) error

// Retry decorates an element so that Get and Stat are tried up to tries times
// when the network or the server fails, with a pause of backoff that doubles.
// Open is tried again until it returns a reader; what is read from it is not.
func Retry(e Element, tries int, backoff time.Duration, sleep Sleep) Element {
	return &retrying{e, tries, backoff, sleep}
}

func temporary(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Temporary()
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (r *retrying) do(ctx context.Context, operation func() error) error {
	pause := r.backoff
	for try := 1; ; try++ {
		err := operation()
		if err == nil || try >= r.tries || ctx.Err() != nil || !temporary(err) {
			return err
		}
		if r.sleep(ctx, pause) != nil {
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

func (r *retrying) Stat(ctx context.Context, pfn string) (info Info, err error) {
	err = r.do(ctx, func() error { info, err = r.Element.Stat(ctx, pfn); return err })
	return info, err
}
