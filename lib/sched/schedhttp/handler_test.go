package schedhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"fairway/lib/sched"
	"fairway/lib/sched/schedhttp"
)

// A handler that computes has a slot, and asks at each step whether another should go on.
func ExampleHandler() {
	s := sched.New(sched.Config{})
	defer s.Close()
	squares := schedhttp.Handler(s, func(t *sched.Task, w http.ResponseWriter, _ *http.Request) {
		sum := 0
		for i := range 100 {
			sum += i * i
			t.Checkpoint()
		}
		fmt.Fprintln(w, sum)
	})
	answer := httptest.NewRecorder()
	squares.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/squares", http.NoBody))
	fmt.Print(answer.Code, " ", answer.Body)
	// Output: 200 328350
}

// Who waits in a handler gives the slot to the next request.
func TestHandlerThatWaitsGivesItsSlotBack(t *testing.T) {
	s := sched.New(sched.Config{Slots: 1})
	defer s.Close()
	second := make(chan int, 1)
	handler := schedhttp.Handler(s, func(_ *sched.Task, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/second" {
			second <- 2
			return
		}
		n, err := sched.Receive(r.Context(), s, second)
		fmt.Fprint(w, n, err)
	})
	first, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		handler.ServeHTTP(first, httptest.NewRequest(http.MethodGet, "/first", http.NoBody))
	}()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/second", http.NoBody))
	<-done
	if first.Body.String() != "2 <nil>" {
		t.Error(first.Body)
	}
}

// What cannot be done is said; to who has gone nothing is.
func TestHandlerOfATooBusyScheduler(t *testing.T) {
	s := sched.New(sched.Config{})
	s.Close()
	never := schedhttp.Handler(s, func(*sched.Task, http.ResponseWriter, *http.Request) { t.Error("called") })
	answer := httptest.NewRecorder()
	never.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if answer.Code != http.StatusServiceUnavailable {
		t.Error(answer.Code)
	}
	busy := sched.New(sched.Config{Slots: 1})
	defer busy.Close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_ = busy.Run(t.Context(), func(*sched.Task) error { // which has the only slot
		silent := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			schedhttp.Handler(busy, func(*sched.Task, http.ResponseWriter, *http.Request) { t.Error("called") }).
				ServeHTTP(silent, httptest.NewRequestWithContext(gone, http.MethodGet, "/", http.NoBody))
		}()
		<-done
		if silent.Body.Len() > 0 {
			t.Error(silent.Body)
		}
		return nil
	})
}
