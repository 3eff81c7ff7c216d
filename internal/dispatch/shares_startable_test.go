package dispatch

import (
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// What limits allow to be given out is no more than each of them, and all of it.
func TestStartableJobsAreWithinLimits(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.SetShares{Shares: taskqueue.Shares{Limits: map[string]int64{"licence": 3}, Of: []taskqueue.Share{
		{Name: "ann", User: true, Weight: 1, Limits: taskqueue.Quota{Running: 4}},
	}}})
	b.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 2, Account: taskqueue.Account{User: "ann"}, KeepGoing: true}})
	sub := taskqueue.Submit{Run: 2}
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		sub.Jobs = append(sub.Jobs, taskqueue.Job{Name: name, Step: "s", Needs: taskqueue.Resources{Memory: int64(i / 3)}})
	}
	b.step(sub)
	count := func() (n int) {
		for _, k := range b.core.jobs.startable {
			n += k
		}
		return n
	}
	if n := count(); n != 4 {
		t.Errorf("of a user who may have 4 jobs %d can start", n)
	}
	more := taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{
		{Name: "pair", Step: "s", Tasks: 2}, {Name: "one", Step: "s"},
		{Name: "x", Step: "s", Needs: taskqueue.Resources{Countable: map[string]int64{"licence": 2}}},
		{Name: "y", Step: "s", Needs: taskqueue.Resources{Countable: map[string]int64{"licence": 2}}},
	}}
	b.step(more)
	if n := count(); n != 4+3 {
		t.Errorf("with those of another one, and licences for one job, %d can start", n)
	}
}

// Of several limits that bind a user the nearest one is told, by what is left of it.
func TestQueuedOfTheNearestLimit(t *testing.T) {
	for _, c := range []struct {
		own, group int
		of         string
		most       int
	}{
		{3, 5, "user lab/ann", 3}, {5, 5, "user lab/ann", 5}, {9, 5, "group lab", 5}, {0, 5, "group lab", 5}, {0, 0, "", 0},
	} {
		b := newBinding(t)
		b.step(taskqueue.SetShares{Shares: taskqueue.Shares{Of: []taskqueue.Share{{
			Name: "lab", Weight: 1, Limits: taskqueue.Quota{Queued: c.group},
			Of: []taskqueue.Share{{Name: "ann", User: true, Weight: 1, Limits: taskqueue.Quota{Queued: c.own}}},
		}}}})
		ann := taskqueue.Account{User: "ann", Group: "lab"}
		b.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 2, Account: ann, KeepGoing: true}})
		b.step(taskqueue.Submit{Run: 2, Jobs: []taskqueue.Job{
			{Name: "a", Step: "s", Writes: []taskqueue.Output{{LFN: "a"}}}, {Name: "b", Step: "s", Reads: []string{"a"}},
		}})
		of, queued, most := b.core.Queued(ann)
		if of != c.of || most != c.most || queued != min(2, 2*most) {
			t.Errorf("with %d and %d: %q has %d of %d", c.own, c.group, of, queued, most)
		}
	}
}

// What a lost pilot had begun counts for its user, as long as it ran.
func TestUsageOfAJobThatIsLost(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.SetShares{Shares: twoUsers(1, 1)})
	b.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 2, Account: taskqueue.Account{User: "ann"}, KeepGoing: true}})
	b.step(taskqueue.Submit{Run: 2, Jobs: []taskqueue.Job{{Name: "a", Step: "s"}}})
	b.sync("p", nil)
	b.begins("p")
	b.after(20 * time.Second)
	b.sync("p", func(s *taskqueue.Sync) { s.Leaving = true })
	for _, s := range b.core.Shares() {
		if ran := s.Usage.Round(time.Second); s.Name == "ann" && ran != 20*time.Second || s.Name == "bob" && ran != 0 {
			t.Errorf("%s has used %v", s.Name, s.Usage)
		}
	}
}

// A pilot that waits gets a job as soon as what kept it is over: jobs that were held, or a licence that
// another one had.
func TestWhoWaitsGetsWhatIsFreed(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.SetShares{Shares: taskqueue.Shares{Limits: map[string]int64{"licence": 1}}})
	b.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 2, Account: taskqueue.Account{User: "ann"}, KeepGoing: true}})
	b.step(taskqueue.HoldJobs{Why: "the disk is full"})
	licence := taskqueue.Resources{Countable: map[string]int64{"licence": 1}}
	b.step(taskqueue.Submit{Run: 2, Jobs: []taskqueue.Job{
		{Name: "a", Step: "s", Needs: licence}, {Name: "b", Step: "s", Needs: licence},
	}})
	for _, pilot := range []taskqueue.PilotID{"p", "q"} {
		b.sync(pilot, nil)
		b.sync(pilot, nil) // and waits
	}
	if len(b.has["p"])+len(b.has["q"]) > 0 {
		t.Fatalf("while jobs are held they have %v and %v", b.names("p"), b.names("q"))
	}
	b.step(taskqueue.HoldJobs{})
	first, second := taskqueue.PilotID("p"), taskqueue.PilotID("q")
	if len(b.has["q"]) > 0 {
		first, second = second, first
	}
	if len(b.has[first]) != 1 || len(b.has[second]) != 0 {
		t.Fatalf("of one licence they have %v and %v", b.names(first), b.names(second))
	}
	a := b.begins(first)
	b.sync(first, func(s *taskqueue.Sync) {
		s.Ended, s.Draining = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt}}, true
	})
	if len(b.has[second]) != 1 {
		t.Errorf("when it is free the other one has %v", b.names(second))
	}
}
