package batch

import (
	"context"
	"sync/atomic"
)

// Calls counts what a batch system was asked. Any goroutine may look.
type Calls struct{ Submits, Statuses, Withdrawals, Errors atomic.Int64 }

// Count returns a system that counts its calls. It is a Notifier or a Batcher if the other is.
func Count(system System) (System, *Calls) {
	c := &counted{System: system, calls: &Calls{}}
	switch system := system.(type) {
	case Notifier:
		return &countedNotifier{counted: c, notifier: system}, c.calls
	case Batcher:
		return &countedBatcher{counted: c, batcher: system}, c.calls
	}
	return c, c.calls
}

type counted struct {
	System
	calls *Calls
}

// Submit is part of System.
func (c *counted) Submit(ctx context.Context, launch string) error {
	c.calls.Submits.Add(1)
	return c.seen(c.System.Submit(ctx, launch))
}

// Status is part of System.
func (c *counted) Status(ctx context.Context) (map[string]Status, error) {
	c.calls.Statuses.Add(1)
	all, err := c.System.Status(ctx)
	return all, c.seen(err)
}

// Withdraw is part of System.
func (c *counted) Withdraw(ctx context.Context, launches ...string) error {
	c.calls.Withdrawals.Add(1)
	return c.seen(c.System.Withdraw(ctx, launches...))
}

func (c *counted) seen(err error) error {
	if err != nil {
		c.calls.Errors.Add(1)
	}
	return err
}

type countedNotifier struct {
	*counted
	notifier Notifier
}

// Ended is part of Notifier.
func (c *countedNotifier) Ended() <-chan End { return c.notifier.Ended() }

// Close is part of Notifier.
func (c *countedNotifier) Close() error { return c.notifier.Close() }

type countedBatcher struct {
	*counted
	batcher Batcher
}

// AtOnce is part of Batcher.
func (c *countedBatcher) AtOnce() int { return c.batcher.AtOnce() }

// SubmitAll is part of Batcher.
func (c *countedBatcher) SubmitAll(ctx context.Context, launches []string) error {
	c.calls.Submits.Add(1)
	return c.seen(c.batcher.SubmitAll(ctx, launches))
}
