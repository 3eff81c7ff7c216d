package sched

import "context"

// Of returns the scheduler of the task that ctx belongs to, or nil. A package
// whose waits work with and without a scheduler asks it which one to use.
func Of(ctx context.Context) *Scheduler {
	if t := taskOf(ctx); t != nil {
		return t.s
	}
	return nil
}
