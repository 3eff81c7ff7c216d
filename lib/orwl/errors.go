package orwl

import (
	"errors"
	"fmt"

	"fairway/lib/orwl/internal/transport"
)

// Errors that a caller decides on. They come wrapped with the location's name.
var (
	// ErrBusy refuses a request on a handle that has one already.
	ErrBusy = errors.New("the handle has a request already")
	// ErrNotRequested ends Acquire and Test on a handle without a request.
	ErrNotRequested = errors.New("the handle has no request")
	// ErrNotHeld refuses what needs a granted request.
	ErrNotHeld = errors.New("the handle does not hold the lock")
	// ErrReadOnly refuses writing or resizing with a read lock.
	ErrReadOnly = errors.New("the lock is held for reading")
	// ErrFull refuses a request where the queue is at its limit (MaxRequests).
	ErrFull = errors.New("the queue of requests is full")
	// ErrPoisoned fails all requests on a location whose writer was lost and
	// that was made with OnLoss(Poison).
	ErrPoisoned = errors.New("the location lost its writer")
	// ErrTooLarge refuses a size that another process may not give a location
	// (Server.MaxSize), or not send to this one (Dialer.MaxSize).
	ErrTooLarge = errors.New("the size is beyond the limit")
	// ErrLeaseLost ends what a handle had or waited for in another process when
	// the connection to it is lost. Nothing written under a lost lock counts.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrStale refuses what was written under a grant that is over.
	ErrStale = errors.New("the grant is over")
	// ErrTooManyMirrors refuses to open one more location by a connection
	// (Server.MaxMirrors).
	ErrTooManyMirrors = errors.New("the connection has too many locations open")
	// ErrUnknown says that the other process does not serve a location.
	ErrUnknown = errors.New("the location is not served")
	// ErrAbsentTask fails all requests on a location made with StartWith, those that wait and
	// those to come, when a process is lost that had one of the first requests there before the
	// start. Make another location.
	ErrAbsentTask = errors.New("a task was lost before the start")
	// ErrNothing refuses a request without a location, or of one that neither New nor Peer.Mirror
	// has made, and a posting that no handle has made.
	ErrNothing = errors.New("a request needs a handle and a location, made by New or Peer.Mirror")
	// ErrInsecure refuses connections without TLS that leave this machine.
	ErrInsecure = errors.New("connections to other machines need TLS")
)

// wireErrors are the errors that a caller decides on, by their codes in frames.
var wireErrors = []error{
	nil, ErrFull, ErrPoisoned, ErrStale, ErrUnknown, ErrTooLarge, ErrAbsentTask, ErrTooManyMirrors, ErrBusy,
}

func codeOf(err error) uint8 {
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

// refusal returns the error that a frame tells of.
func refusal(f *transport.Frame) error {
	e := &remoteError{text: f.Text}
	if int(f.Code) < len(wireErrors) {
		e.is = wireErrors[f.Code]
	}
	return e
}

// checkName refuses a name that no peer takes.
func checkName(what, name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("%s has %d bytes, and another process takes at most %d: %w", what, len(name), MaxName, ErrTooLarge)
	}
	return nil
}
