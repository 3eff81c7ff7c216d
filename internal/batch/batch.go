// Package batch starts pilots on batch systems.
//
// A [System] is told how many pilots to start and gives each a name, its
// launch; it tells when the system no longer has a pilot. It knows nothing of
// jobs. Methods may be called from any goroutine.
package batch

import "context"

// Ending says that the batch system no longer has a pilot.
type Ending struct {
	Launch string
	Reason string // for a person
}

// System is one batch system at one site.
type System interface {
	// Submit asks for n pilots and returns the launches of those that the
	// system took, also together with an error.
	Submit(ctx context.Context, n int) (launches []string, err error)
	// Withdraw asks the system to end a pilot in order: SIGTERM, after which
	// the pilot ends its jobs and says farewell. One that has ended already is
	// no error.
	Withdraw(ctx context.Context, launch string) error
	// Alive returns the launches that the system has for the same state, whoever
	// submitted them: also those of a process that was killed before it could
	// record them.
	Alive() (launches []string, err error)
	// Adopt takes over pilots that an earlier process submitted for the same
	// state, out of the given launches, and returns those that the system still
	// has. They are then like those that Submit returned.
	Adopt(launches []string) (alive []string, err error)
	// Ended yields each pilot once when the system no longer has it. The
	// receiver must keep up: the system waits for it.
	Ended() <-chan Ending
	// Close ends all pilots that are left and closes Ended when they are gone.
	// Endings that nobody receives meanwhile are dropped. No other method may
	// be called any more.
	Close() error
}
