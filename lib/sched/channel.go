package sched

import (
	"context"
	"errors"
	"fmt"
)

// ErrChannelClosed is returned by [Receive] for a channel without more values.
var ErrChannelClosed = errors.New("channel is closed")

// Receive waits for a value from ch, or returns [ErrChannelClosed]. It involves no other goroutine than the
// caller and the sender.
func Receive[T any](ctx context.Context, s *Scheduler, ch <-chan T) (T, error) {
	var none T
	select {
	case v, ok := <-ch:
		return received(v, ok)
	default:
	}
	if task := pauseTask(ctx); task != nil {
		defer task.wake(nil)
	} else {
		defer s.stir()
	}
	select {
	case v, ok := <-ch:
		return received(v, ok)
	case <-ctx.Done():
		return none, fmt.Errorf("receive: %w", ctx.Err())
	case <-s.closing:
		return none, fmt.Errorf("receive: %w", ErrClosed)
	}
}

func received[T any](v T, ok bool) (T, error) {
	if !ok {
		return v, ErrChannelClosed
	}
	return v, nil
}

type outcome[T any] struct {
	value T
	err   error
}

// Call runs start, which begins something that calls done when it is complete,
// from any goroutine, and waits for that. The first call of done counts. When
// ctx ends first, what was begun goes on unobserved; start should watch ctx too.
func Call[T any](ctx context.Context, s *Scheduler, start func(done func(T, error))) (T, error) {
	ch := make(chan outcome[T], 1)
	start(func(v T, err error) {
		select {
		case ch <- outcome[T]{v, err}:
		default:
		}
	})
	o, err := Receive(ctx, s, ch)
	if err != nil {
		return o.value, err
	}
	return o.value, o.err
}
