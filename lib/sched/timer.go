package sched

import (
	"context"
	"fmt"
	"time"
)

// Sleep waits for d. A d that is not positive returns at once.
func (s *Scheduler) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sleep: %w", err)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	_, err := Receive(ctx, s, timer.C)
	return err
}

// WaitUntil waits until t has come.
func (s *Scheduler) WaitUntil(ctx context.Context, t time.Time) error {
	return s.Sleep(ctx, time.Until(t))
}
