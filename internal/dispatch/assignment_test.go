package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairway/internal/taskqueue"
)

// A job of which no pilot could be told is refused, and what is too much for one answer comes
// in the next.
func TestAssignmentsFitIntoAnswers(t *testing.T) {
	c := withRun(t, taskqueue.Config{Ahead: -1})
	step := func(in taskqueue.Input) taskqueue.Effects {
		t.Helper()
		e, err := c.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	const jobs = 7
	c.answerSize = 3 * taskqueue.AssignmentSize(nil, slices.Values([]string{"f"}), nil) // three of them
	step(taskqueue.AddFiles{Run: 1, Files: []taskqueue.ExistingFile{{LFN: "f", PFN: "x", Size: 1, Tag: 1 << 63}}})
	_, err := c.Step(epoch, taskqueue.Submit{
		Run: 1, Jobs: []taskqueue.Job{{Name: "large", Reads: []string{strings.Repeat("x", taskqueue.MaxAssignment/2)}}},
	})
	if !errors.Is(err, taskqueue.ErrRefused) || !strings.Contains(err.Error(),
		"job large cannot be run: it reads 1 files and writes 0: a pilot could not be told of so many") {
		t.Errorf("%.300v", err)
	}
	for i := range jobs {
		step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: fmt.Sprint("j", i), Reads: []string{"f"}}}})
	}
	var told []string
	answers, seq, last := 0, uint64(0), uint64(0)
	for len(told) < jobs {
		seq++
		m := taskqueue.Sync{Pilot: "p", Seq: seq, LastAnswer: last, Hold: true}
		if seq == 1 {
			m.Full, m.Hello = true, &taskqueue.PilotInfo{Host: "h", Site: "a", Has: taskqueue.Resources{MilliCPUs: jobs * 1000}}
		}
		replies := step(m).Replies
		if len(replies) == 0 {
			t.Fatalf("after %d of %d jobs the pilot waits", len(told), jobs)
		}
		last = replies[0].Answer.Number
		for _, a := range replies[0].Answer.Run {
			told = append(told, a.Name)
		}
		if n := len(replies[0].Answer.Run); n > 3 {
			t.Fatalf("%d jobs in one answer", n)
		} else if n > 0 {
			answers++
		}
	}
	if answers != 3 || fmt.Sprint(told) != "[j0 j1 j2 j3 j4 j5 j6]" {
		t.Errorf("in %d answers: %v", answers, told)
	}
}
