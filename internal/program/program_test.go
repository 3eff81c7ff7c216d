package program

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A program that hangs is not said to be killed, but how long it did not answer; one that was not wanted any more
// is said to have been ended; others fail as they do.
func TestFailures(t *testing.T) {
	killed := &exec.ExitError{}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := Failure(ctx, began, killed); !errors.Is(err, killed) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one that failed by itself: %v", err)
		}
		<-ctx.Done()
		err := Failure(ctx, began, killed)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not answer for 20.0 s") {
			t.Errorf("one that hangs: %v", err)
		}
		if err := Failure(ctx, began, nil); err != nil {
			t.Errorf("one that went well: %v", err)
		}
		ended, end := context.WithCancelCause(t.Context())
		end(errors.New("the run is over"))
		if err := Failure(ended, began, killed); !strings.Contains(err.Error(), "the run is over") {
			t.Errorf("one that is not wanted: %v", err)
		}
	})
}
