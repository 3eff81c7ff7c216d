// Package batch starts pilots on batch systems.
//
// A [System] takes launches by name, tells of all of them at once, and withdraws
// them. It keeps nothing that matters: the name of a launch is made durable before
// it is submitted, is the name of its job, and is found again in the answers of
// the batch system. A [Roster] submits and withdraws launches until a System has those that are
// wanted, however slow or forgetful the System is, and never beyond a number.
//
// Neither knows jobs. Methods may be called from any goroutine.
package batch

import (
	"context"
	"io"
)

// State is what a batch system says of a launch. One that it doesn't name is not
// known yet, or not any more: that is no State.
type State uint8

// The states of a launch, in the order of its life.
const (
	Queued  State = iota // waits for its turn
	Running              // the pilot has been started, or is about to be
	Ending               // it is being ended, and may still run
	Gone                 // nothing of it runs
)

func (s State) String() string {
	return [...]string{"queued", "running", "ending", "gone"}[s]
}

// Status is what a batch system says of a launch.
type Status struct {
	State  State
	Reason string // for a person: why it waits, or how it ended
	Never  bool   // it could never start as it was asked for, as far as the system tells
	Jobs   int    // that bear the name and are not Gone; more than 1 if the batch system started it twice
}

// NeverError is a refusal of a launch that the system could never start as it is asked for.
type NeverError struct{ Err error }

func (e *NeverError) Error() string { return e.Err.Error() }

func (e *NeverError) Unwrap() error { return e.Err }

// System is one batch system, as far as it has pilots of one state.
type System interface {
	// Submit has the system start the pilot of a launch. An error may also mean
	// that it is not known whether it was submitted; it is repeated only if Status
	// says that the system has no such launch.
	Submit(ctx context.Context, launch string) error
	// Status asks one question, and returns what the system says of all launches
	// of the state, whoever submitted them.
	Status(ctx context.Context) (map[string]Status, error)
	// Withdraw asks the system to end launches: those that run by SIGTERM, after
	// which a pilot ends its jobs and says farewell. It is no error if the system
	// has none of that name.
	Withdraw(ctx context.Context, launches ...string) error
}

// Batcher is a System that takes several launches with one call.
type Batcher interface {
	System
	// AtOnce is how many launches SubmitAll takes at most, at least 1.
	AtOnce() int
	// SubmitAll is Submit for launches of different names. Its error is that of all of them.
	SubmitAll(ctx context.Context, launches []string) error
}

// Notifier is a System that tells by itself, at once and once, when it no longer
// has a launch. Its Status is exact: a launch that it doesn't name is gone. So is
// Submit: of one that failed it has nothing.
type Notifier interface {
	System
	// Ended yields the ends of launches until the system is closed. The receiver
	// must keep up: the system waits for it.
	Ended() <-chan End
	// Close ends all pilots that are left, and closes Ended when they are gone.
	// Ends that nobody receives meanwhile are dropped.
	io.Closer
}

// End says that the batch system no longer has a pilot.
type End struct {
	Launch string
	Reason string // for a person
}
