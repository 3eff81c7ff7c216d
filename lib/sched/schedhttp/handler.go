// Package schedhttp has handlers of net/http compute as tasks of package sched, so that the others are
// answered at once.
package schedhttp

import (
	"errors"
	"net/http"

	"fairway/lib/sched"
)

// Handler returns a handler that runs f as a task of s for each request, on the goroutine of the
// connection: it begins when a slot is free, and the request's context is that of the task, so that its
// waits through s give the slot back. f should pass t.Checkpoint often where it computes for long, and
// wrap in t.Block what blocks otherwise, such as a long answer to a slow client.
//
// A request is answered with 503 (Service Unavailable) where s has as many tasks as it may have or is
// closed, and not at all where its client has gone before a slot was free.
func Handler(
	s *sched.Scheduler, f func(t *sched.Task, w http.ResponseWriter, r *http.Request), options ...sched.TaskOption,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := s.Run(r.Context(), func(t *sched.Task) error {
			f(t, w, r.WithContext(t.Context()))
			return nil
		}, options...)
		if errors.Is(err, sched.ErrTooMany) || errors.Is(err, sched.ErrClosed) {
			http.Error(w, "there is too much to do: "+err.Error(), http.StatusServiceUnavailable)
		}
	})
}
