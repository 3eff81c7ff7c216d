package dispatch

import (
	"testing"
	"time"
)

// A job whose outputs could not be stored once is tried again where its input is, as the
// storage element may be to blame, and the second time on another host.
func TestFailedTransferLeavesTheJobAtItsInput(t *testing.T) {
	s := newSharers(t)
	s.sync("a", "h1", "", nil)
	s.has("a", "")
	s.sync("b", "h2", "", nil)
	s.jobs(1)
	now := epoch
	for i, at := range []PilotID{"a", "a", "b"} {
		run, ok := s.ran[at]
		if !ok || len(s.ran) != 1 {
			t.Fatalf("attempt %d: assigned to %v, want %s", i+1, s.ran, at)
		}
		clear(s.ran)
		s.sync(at, "", "", func(m *Sync) {
			m.Ended = []Result{{Job: run.Job, Attempt: run.Attempt, Outcome: StageOutFailed}}
		})
		s.sync("a", "", "", nil) // both wait for news
		s.sync("b", "", "", nil)
		now = now.Add(time.Minute) // the pause before the next attempt
		e, err := s.core.Step(now, Tick{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Replies {
			s.last[r.Pilot] = r.Answer.Number
			for _, a := range r.Answer.Run {
				s.ran[r.Pilot] = a
			}
		}
	}
}
