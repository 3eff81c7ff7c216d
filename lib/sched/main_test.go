package sched

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newTest makes a scheduler that is closed at the end of the test.
func newTest(t *testing.T, c Config) *Scheduler {
	t.Helper()
	s := New(c)
	t.Cleanup(s.Close)
	return s
}

// patient returns a context that ends long after anything a test waits for.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// until waits for a condition by polling for it through the product.
func until(t *testing.T, s *Scheduler, what string, cond func() bool) {
	t.Helper()
	h := Register(s, Kind[struct{}, struct{}]{Name: "condition", Poll: func(waiting []*Request[struct{}, struct{}]) {
		for _, r := range waiting {
			if cond() {
				r.Done(struct{}{}, nil)
			}
		}
	}})
	if _, err := h.Wait(patient(t), struct{}{}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
