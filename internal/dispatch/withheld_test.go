package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// What a pilot that keeps calling does not begin goes to others, whatever room it says that it has, and whether
// or not it gives back what it is asked for. It is tried with one job at a time until it begins one.
func TestWhatATalkingPilotDoesNotBeginGoesToOthers(t *testing.T) {
	for _, cpus := range []int64{1000, 4000, 8000} {
		for _, givesBack := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d,%v", cpus, givesBack), func(t *testing.T) { idleBesideHonest(t, cpus, givesBack) })
		}
	}
}

func idleBesideHonest(t *testing.T, cpus int64, givesBack bool) {
	const jobs = 8
	b := newBinding(t)
	b.jobs("s", 0, jobs)
	b.sync("idle", func(s *taskqueue.Sync) { s.Hello.Has.MilliCPUs = cpus })
	b.sync("honest", nil)
	done, most := 0, 0
	for range 100 {
		b.after(time.Second)
		b.sync("idle", func(s *taskqueue.Sync) {
			if !givesBack {
				return
			}
			for _, a := range b.has["idle"] {
				if b.asked[a.Attempt] {
					s.Ended = append(s.Ended, taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Ended})
				}
			}
		})
		b.sync("honest", nil)
		for len(b.has["honest"]) > 0 {
			b.runs("honest", time.Second)
			done++
			most = max(most, len(b.core.fleet.pilots["idle"].attempts))
		}
		if err := b.core.CheckBinding(); err != nil {
			t.Fatal(err)
		}
	}
	p := b.core.fleet.pilots["idle"]
	if done != jobs || !p.record.withholds {
		t.Fatalf("%d of %d jobs were done, withholds %v", done, jobs, p.record.withholds)
	}
	b.jobs("t", 0, 1)
	b.sync("idle", nil)
	if len(p.attempts) > 0 {
		t.Error("it gets what the other one could begin at once")
	}
	b.jobs("u", 0, 20)
	b.sync("idle", nil)
	if len(p.attempts) != 1 {
		t.Fatalf("it is tried with %d jobs at a time", len(p.attempts))
	}
	id := p.attempts[0].id
	b.has["idle"] = slices.DeleteFunc(b.has["idle"], func(a taskqueue.Assignment) bool { return a.Attempt != id })
	b.begins("idle")
	if p.record.withholds {
		t.Error("it has begun one, and gets no more")
	}
}
