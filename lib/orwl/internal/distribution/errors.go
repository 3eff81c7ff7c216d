package distribution

import (
	"errors"

	"fairway/lib/orwl/internal/transport"
)

// The errors of package orwl, which says what they mean. All but the last two have codes in frames.
var (
	ErrFull           = errors.New("the queue of requests is full")
	ErrPoisoned       = errors.New("the location lost its writer")
	ErrStale          = errors.New("the grant is over")
	ErrUnknown        = errors.New("the location is not served")
	ErrTooLarge       = errors.New("the size is beyond the limit")
	ErrAbsentTask     = errors.New("a task was lost before the start")
	ErrTooManyMirrors = errors.New("the connection has too many locations open")
	ErrBusy           = errors.New("the handle has a request already")
	ErrLeaseLost      = errors.New("the lease is lost")
	ErrInsecure       = errors.New("connections to other machines need TLS")
)

// wireErrors are the errors that a caller decides on, by their codes in frames.
var wireErrors = []error{
	nil, ErrFull, ErrPoisoned, ErrStale, ErrUnknown, ErrTooLarge, ErrAbsentTask, ErrTooManyMirrors, ErrBusy,
}

// CodeOf is the code of an error in a frame, 0 where callers do not decide on it.
func CodeOf(err error) uint8 {
	for i, e := range wireErrors[1:] {
		if errors.Is(err, e) {
			return uint8(i + 1)
		}
	}
	return 0
}

// remoteError is an error that another process reported.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

// Refusal returns the error that a frame tells of.
func Refusal(f *transport.Frame) error {
	e := &remoteError{text: f.Text}
	if int(f.Code) < len(wireErrors) {
		e.is = wireErrors[f.Code]
	}
	return e
}
