//go:build !linux

package sched

import (
	"context"
	"os"
)

// reap calls wait, which reaps the process, on a thread of its own. If ctx ends
// first that thread goes on, and a later wait for the process fails.
func (s *Scheduler) reap(ctx context.Context, _ *os.Process, wait func() error) error {
	done, err := Call(ctx, s, func(done func(error, error)) {
		go func() { done(wait(), nil) }()
	})
	if err != nil {
		return err
	}
	return done
}
