package dispatch

import (
	"fmt"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// Pilots that are there look for a program that a job names, and get the job when they have found it.
// That they have not is known of their site, until they are to look once more.
func TestPilotsLookForPrograms(t *testing.T) {
	c, _ := New(taskqueue.Config{})
	now := time.Unix(1_800_000_000, 0)
	step := func(in taskqueue.Input) taskqueue.Effects {
		t.Helper()
		e, err := c.Step(now, in)
		if err != nil {
			t.Fatalf("%T: %v", in, err)
		}
		return e
	}
	last := func(e taskqueue.Effects) taskqueue.Answer {
		t.Helper()
		if len(e.Replies) != 1 {
			t.Fatalf("%d answers", len(e.Replies))
		}
		return e.Replies[0].Answer
	}
	hello := taskqueue.PilotInfo{Host: "h", Site: "s", Has: taskqueue.Resources{MilliCPUs: 1000}}
	step(taskqueue.SetSite{Site: taskqueue.Site{Name: "s", MaxPilots: 1, Pilot: hello.Has, FindsTools: true}})
	first := last(step(taskqueue.Sync{Pilot: "p", Seq: 1, Full: true, Hello: &hello, Hold: true}))
	if len(first.LookFor) > 0 {
		t.Errorf("it is to look for %v", first.LookFor)
	}
	step(taskqueue.Sync{Pilot: "p", Seq: 2, LastAnswer: first.Number, Hold: true})
	step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1}})
	asked := last(step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "j", Step: "j",
		Tools: []string{"samtools"}}}}))
	if fmt.Sprint(asked.LookFor) != "[samtools]" || asked.LookForNumber == 0 {
		t.Fatalf("the pilot that is there is told %v", asked)
	}
	look := func(seq uint64, after taskqueue.Answer, tools ...string) taskqueue.Effects {
		found := hello
		found.Tools = tools
		return step(taskqueue.Sync{
			Pilot: "p", Seq: seq, LastAnswer: after.Number, Hold: true, Hello: &found, LookedFor: after.LookForNumber,
		})
	}
	if e := look(3, asked); len(e.Replies) > 0 {
		t.Errorf("a pilot without the program is told %v", e.Replies)
	}
	if c.Looking() || fmt.Sprint(c.Missing([]string{"samtools", "other"})) != "[samtools]" {
		t.Error("it is not known that the program is not there")
	}
	again := last(step(taskqueue.LookFor{Tools: []string{"samtools"}}))
	if again.LookForNumber == asked.LookForNumber || !c.Looking() || len(c.Missing([]string{"samtools"})) > 0 {
		t.Errorf("it is not looked for again: %v", again)
	}
	if got := last(look(4, again, "samtools")); len(got.Run) != 1 || len(got.LookFor) > 0 {
		t.Errorf("a pilot that has found the program is told %v", got)
	}
}
