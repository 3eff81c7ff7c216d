package orwl

import (
	"errors"
	"fmt"

	"fairway/lib/orwl/internal/distribution"
)

// Errors that a caller decides on. They come wrapped with the location's name.
var (
	// ErrBusy refuses a request on a handle that has one already.
	ErrBusy = distribution.ErrBusy
	// ErrNotRequested ends Acquire and Test on a handle without a request.
	ErrNotRequested = errors.New("the handle has no request")
	// ErrNotHeld refuses what needs a granted request.
	ErrNotHeld = errors.New("the handle does not hold the lock")
	// ErrReadOnly refuses writing or resizing with a read lock.
	ErrReadOnly = errors.New("the lock is held for reading")
	// ErrFull refuses a request where the queue is at its limit (MaxRequests).
	ErrFull = distribution.ErrFull
	// ErrPoisoned fails all requests on a location whose writer was lost and
	// that was made with OnLoss(Poison).
	ErrPoisoned = distribution.ErrPoisoned
	// ErrTooLarge refuses a size that another process may not give a location
	// (Server.MaxSize), or not send to this one (Dialer.MaxSize).
	ErrTooLarge = distribution.ErrTooLarge
	// ErrLeaseLost ends what a handle had or waited for in another process when
	// the connection to it is lost. Nothing written under a lost lock counts.
	ErrLeaseLost = distribution.ErrLeaseLost
	// ErrStale refuses what was written under a grant that is over.
	ErrStale = distribution.ErrStale
	// ErrTooManyMirrors refuses to open one more location by a connection
	// (Server.MaxMirrors).
	ErrTooManyMirrors = distribution.ErrTooManyMirrors
	// ErrUnknown says that the other process does not serve a location.
	ErrUnknown = distribution.ErrUnknown
	// ErrAbsentTask fails all requests on a location made with StartWith, those that wait and
	// those to come, when a process is lost that had one of the first requests there before the
	// start. Make another location.
	ErrAbsentTask = distribution.ErrAbsentTask
	// ErrNothing refuses a request without a location, or of one that neither New nor Peer.Mirror
	// has made, and a posting that no handle has made.
	ErrNothing = errors.New("a request needs a handle and a location, made by New or Peer.Mirror")
	// ErrInsecure refuses connections without TLS that leave this machine.
	ErrInsecure = distribution.ErrInsecure
)

// checkName refuses a name that no peer takes.
func checkName(what, name string) error {
	if len(name) > MaxName {
		return fmt.Errorf("%s has %d bytes, and another process takes at most %d: %w", what, len(name), MaxName, ErrTooLarge)
	}
	return nil
}
