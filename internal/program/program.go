// Package program says what became of programs that Fairway calls and that were ended because they took too long.
package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fairway/internal/quantity"
)

// SilentError says that a program did not end in the time that it had, and was ended.
type SilentError struct {
	Time time.Duration // that it had
}

func (e *SilentError) Error() string {
	return "it did not answer for " + quantity.Seconds(e.Time.Seconds()) + ", and was ended"
}

// Unwrap makes it a [context.DeadlineExceeded].
func (e *SilentError) Unwrap() error { return context.DeadlineExceeded }

// Failure is err, the end of a program that was begun at a time, or why the program was ended if ctx did that: by
// itself, the system tells of such a program only by which signal it was ended.
func Failure(ctx context.Context, began time.Time, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &SilentError{time.Since(began)}
	}
	return fmt.Errorf("it was ended: %w", context.Cause(ctx))
}
