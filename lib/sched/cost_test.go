package sched

import (
	"context"
	"testing"
)

// BenchmarkReceive is a round of ping-pong of two tasks.
func BenchmarkReceive(b *testing.B) {
	s := New(Config{})
	defer s.Close()
	ping, pong := make(chan int, 1), make(chan int, 1)
	play := func(out chan<- int, in <-chan int) *Task {
		return s.Go(context.Background(), func(t *Task) error {
			for range b.N {
				if _, err := Receive(t.Context(), s, in); err != nil {
					return err
				}
				out <- 1
			}
			return nil
		})
	}
	ping <- 1
	one, other := play(pong, ping), play(ping, pong)
	if one.Wait(b.Context()) != nil || other.Wait(b.Context()) != nil {
		b.Error("cut short")
	}
}
