//go:build !unix || aix

package sched

import "fmt"

// pollSet stands for the detection that this system lacks.
type pollSet struct{}

func newPollSet() (*pollSet, error) {
	return nil, fmt.Errorf("readiness of descriptors: %w", ErrUnsupported)
}

func (*pollSet) close()                 {}
func (*pollSet) kind() Kind[FD, Events] { return Kind[FD, Events]{Name: "fd"} }
