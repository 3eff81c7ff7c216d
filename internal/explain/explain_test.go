package explain

import (
	"slices"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// An attempt that waits says behind what, and how fast its input comes.
func TestAttemptsThatWait(t *testing.T) {
	e := taskqueue.Explanation{JobView: taskqueue.JobView{State: taskqueue.Assigned}}
	e.Places.Add(taskqueue.AttemptStanding{Try: 1, Pilot: "p", Host: "h", AwaitsTurn: true,
		Ahead: &taskqueue.JobAhead{State: taskqueue.Running, More: 2},
		Inputs: []taskqueue.AwaitedInput{{
			WaitingInput: taskqueue.WaitingInput{LFN: "in", Bytes: 5, For: 5 * time.Second, Source: "q"}, Size: 20,
		}},
	}, 1)
	e.Places.Add(taskqueue.AttemptStanding{}, 1)
	want := []string{
		"waits at pilot p (host h) for its turn, behind a job of another run, which is running, and 2 more",
		"it waits for input in, which is read from the cache of pilot q for 5s: 5 B of 20 B have come, 1 B a second",
		"and so on: 1 more tasks",
	}
	if got := Lines(&e); !slices.Equal(got, want) {
		t.Errorf("it says %q", got)
	}
}
