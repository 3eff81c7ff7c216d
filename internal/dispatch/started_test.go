package dispatch

import (
	"math"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// Of an attempt of which its pilot could not tell at once, the start is known all the same: that the server has
// changed meanwhile makes none younger. What a pilot says beyond the submission of the job, or before its own
// words, is cut, and changes neither what is charged nor what is bounded.
func TestTheStartOfAnAttemptIsThatOfItsPilot(t *testing.T) {
	for says, want := range map[time.Duration]time.Duration{
		0: 0, time.Minute: time.Minute, 10 * time.Minute: 10 * time.Minute, time.Hour: 10 * time.Minute,
		math.MaxInt64: 10 * time.Minute, -time.Hour: 0, math.MinInt64: 0,
	} {
		b := newBinding(t)
		b.jobs("j", 0, 1)
		b.sync("p", nil)
		b.after(10 * time.Minute)
		a := b.has["p"][0]
		b.seq["p"]++
		e := b.step(taskqueue.Sync{
			Pilot: "p", Seq: b.seq["p"], LastAnswer: b.last["p"], Full: true, Hold: true,
			Hello:   &taskqueue.PilotInfo{Host: "p", Site: "far", Has: taskqueue.Resources{MilliCPUs: 1000}},
			Started: []taskqueue.AttemptRef{{Job: a.Job, Attempt: a.Attempt, Running: says}},
		})
		begun := 0
		for _, x := range e.Events {
			if x.Kind == taskqueue.JobStarted {
				begun++
				if x.Ago != want {
					t.Errorf("it began %v ago, and its pilot says %v", x.Ago, says)
				}
			}
		}
		if begun != 1 {
			t.Errorf("it began %d times", begun)
		}
		if run := b.core.fleet.attempts[a.Attempt]; run.occupied(b.core.now) != 0 {
			t.Errorf("%v are charged", run.occupied(b.core.now))
		}
	}
}
