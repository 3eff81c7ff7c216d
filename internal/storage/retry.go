package storage

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// What elements of a network are given to Retry.
const (
	DefaultTries   = 4
	DefaultBackoff = 200 * time.Millisecond
	// MaxRetryAfter bounds how long a server may have itself waited for.
	MaxRetryAfter = time.Minute
	// Patience is how long jobs wait for a server that is away, which costs none of their attempts.
	Patience = 5 * time.Minute
	// SilentTime is how long a server gives no answer before those who wait for it are told ([WithPatience]).
	SilentTime = 10 * time.Second
	// MaxAwayPause bounds the pause between two tries meanwhile.
	MaxAwayPause = 5 * time.Second
)

type patienceKey struct{}

type patience struct {
	limit time.Duration
	tell  func(pfn string, why error)
}

// WithPatience has what is done with the context wait so long for servers that are away ([IsAway]) or give no
// answer, however many tries that are. tell is called from any goroutine when a try finds one away that was so for
// SlowTime, and in each SilentTime in which one gives no answer to a request.
func WithPatience(ctx context.Context, limit time.Duration, tell func(pfn string, why error)) context.Context {
	return context.WithValue(ctx, patienceKey{}, patience{limit, tell})
}

// IsAway reports whether an error says that a server could not be reached, or cannot serve anybody now: it says
// nothing of the file that was asked for.
func IsAway(err error) bool {
	if dialled, ok := errors.AsType[*net.OpError](err); ok && dialled.Op == "dial" {
		unknown, ok := errors.AsType[*net.DNSError](err)
		return !ok || !unknown.IsNotFound
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Status == http.StatusBadGateway || status.Status == http.StatusServiceUnavailable ||
			status.Status == http.StatusGatewayTimeout
	}
	_, silent := errors.AsType[*AwayError](err)
	return silent
}

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

func (r *retrying) do(ctx context.Context, pfn string, operation func(context.Context) error) error {
	pause := r.backoff
	wait, _ := ctx.Value(patienceKey{}).(patience)
	last, _ := ctx.Value(lastTryKey{}).(*lastTry)
	var away time.Time // since when the server is away
	for try, silent := 1, time.Duration(0); ; try++ {
		began := time.Now()
		err := wait.attend(ctx, pfn, operation)
		last.failed(err)
		if isSilence(err) {
			silent += time.Since(began)
		}
		if err == nil || ctx.Err() != nil || !Temporary(err) {
			return err
		}
		if wait.limit > 0 && (IsAway(err) || isSilence(err)) {
			if away.IsZero() {
				away = began
			}
			if time.Since(away) < wait.limit {
				try = 0
			}
			if time.Since(away) >= SlowTime {
				wait.tell(pfn, err)
			}
		}
		if try >= r.tries || try > 0 && silent >= AwayTime {
			return err
		}
		if r.sleep(ctx, max(pause/2, told(err))+rand.N(pause/2+1)) != nil {
			return err
		}
		if pause *= 2; !away.IsZero() {
			pause = min(pause, MaxAwayPause)
		}
	}
}

// Patiently does an operation on a file of a server, which is not patient itself: once, and again while ctx is
// patient ([WithPatience]) and a server away or silent. It is for what may be done in several ways, of which each is
// tried before anybody waits.
func Patiently(ctx context.Context, pfn string, sleep Sleep, operation func(context.Context) error) error {
	once := &retrying{tries: 1, backoff: DefaultBackoff, sleep: sleep}
	return once.do(ctx, pfn, func(ctx context.Context) error {
		return operation(context.WithValue(ctx, patienceKey{}, patience{}))
	})
}

func (r *retrying) Open(ctx context.Context, pfn string) (body io.ReadCloser, err error) {
	err = r.do(ctx, pfn, func(ctx context.Context) error { body, err = r.Element.Open(ctx, pfn); return err })
	return body, err
}

func (r *retrying) Get(ctx context.Context, pfn, path string) (size int64, err error) {
	err = r.do(ctx, pfn, func(ctx context.Context) error { size, err = r.Element.Get(ctx, pfn, path); return err })
	return size, err
}

func (r *retrying) Put(ctx context.Context, path, pfn string) error {
	return r.do(ctx, pfn, func(ctx context.Context) error { return r.Element.Put(ctx, path, pfn) })
}

func (r *retrying) Stat(ctx context.Context, pfn string) (info Info, err error) {
	err = r.do(ctx, pfn, func(ctx context.Context) error { info, err = r.Element.Stat(ctx, pfn); return err })
	return info, err
}

func (r *retrying) Remove(ctx context.Context, pfn string) error {
	return r.do(ctx, pfn, func(ctx context.Context) error { return r.Element.Remove(ctx, pfn) })
}

func (r *retrying) List(ctx context.Context, pfn string) (entries []Entry, err error) {
	err = r.do(ctx, pfn, func(ctx context.Context) error { entries, err = r.Element.List(ctx, pfn); return err })
	return entries, err
}
