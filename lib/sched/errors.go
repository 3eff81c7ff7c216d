package sched

import (
	"errors"
	"fmt"
	"runtime/debug"
)

var (
	// ErrClosed ends every wait and every task start after [Scheduler.Close].
	ErrClosed = errors.New("scheduler is closed")
	// ErrUnsupported is returned by a wait that this system cannot carry out.
	ErrUnsupported = errors.New("not supported on this system")
	// ErrExited is the error of a task or a callback whose function ended its goroutine, as
	// [runtime.Goexit] does, instead of returning.
	ErrExited = errors.New("the function has ended its goroutine")
	// ErrCallback is returned by a Shutdown that a callback has called, and that would wait for it.
	ErrCallback = errors.New("a callback is not waited for by itself")
	// ErrTooMany is returned when a limit named in [Config] is reached.
	ErrTooMany = errors.New("too many")
)

// PanicError ends the waits of a kind one of whose callbacks panicked.
type PanicError struct {
	Kind     string // name of the kind
	Callback string // field of Kind that panicked
	Value    any    // what was passed to panic
	Stack    []byte // stack of the panicking goroutine
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("callback %s of kind %s panicked: %v", e.Callback, e.Kind, e.Value)
}

// Unwrap gives the error that was passed to panic, if it was one.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// try calls a function that belongs to one request, so that its panic ends that
// request alone.
func try(kind, callback string, f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Kind: kind, Callback: callback, Value: v, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}
