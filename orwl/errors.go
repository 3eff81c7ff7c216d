package orwl

import "errors"

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
	// ErrCancelled ends an Acquire whose request was cancelled meanwhile.
	ErrCancelled = errors.New("the request was cancelled")
	// ErrFull refuses a request where the queue is at its limit (MaxRequests).
	ErrFull = errors.New("the queue of requests is full")
	// ErrPoisoned fails all requests on a location whose writer was lost and
	// that was made with OnLoss(Poison).
	ErrPoisoned = errors.New("the location lost its writer")
)
