package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// binding is a Core with pilots of one processor that do as they are told.
type binding struct {
	t     *testing.T
	core  *Core
	now   time.Time
	seq   map[taskqueue.PilotID]uint64
	last  map[taskqueue.PilotID]uint64
	held  map[taskqueue.PilotID]uint64 // Seq of the Sync that is held
	has   map[taskqueue.PilotID][]taskqueue.Assignment
	asked map[taskqueue.AttemptID]bool // to be given back, or ended
}

func newBinding(t *testing.T) *binding {
	core, _ := New(taskqueue.Config{Ahead: 32})
	b := &binding{
		t: t, core: core, now: time.Unix(1e9, 0),
		seq: map[taskqueue.PilotID]uint64{}, last: map[taskqueue.PilotID]uint64{}, held: map[taskqueue.PilotID]uint64{},
		has: map[taskqueue.PilotID][]taskqueue.Assignment{}, asked: map[taskqueue.AttemptID]bool{},
	}
	b.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, Name: "w", KeepGoing: true}})
	return b
}

func (b *binding) step(in taskqueue.Input) taskqueue.Effects {
	b.t.Helper()
	e, err := b.core.Step(b.now, in)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range e.Replies {
		b.last[r.Pilot] = max(b.last[r.Pilot], r.Answer.Number)
		delete(b.held, r.Pilot)
		for _, a := range r.Answer.Run {
			if !slices.ContainsFunc(b.has[r.Pilot], func(x taskqueue.Assignment) bool { return x.Attempt == a.Attempt }) {
				b.has[r.Pilot] = append(b.has[r.Pilot], a)
			}
		}
		for _, id := range slices.Concat(r.Answer.GiveBack, r.Answer.End) {
			b.asked[id] = true
		}
	}
	return e
}

func (b *binding) after(d time.Duration) {
	b.now = b.now.Add(d)
	b.step(taskqueue.Tick{})
}

// sync has a pilot call; change says what it has to tell besides.
func (b *binding) sync(pilot taskqueue.PilotID, change func(*taskqueue.Sync)) {
	b.t.Helper()
	b.seq[pilot]++
	s := taskqueue.Sync{Pilot: pilot, Seq: b.seq[pilot], LastAnswer: b.last[pilot], Hold: true}
	if b.last[pilot] == 0 {
		s.Full, s.Hello = true, &taskqueue.PilotInfo{Host: string(pilot), Site: "far",
			Has: taskqueue.Resources{MilliCPUs: 1000}}
	}
	if change != nil {
		change(&s)
	}
	b.held[pilot] = s.Seq
	b.step(s)
}

// jobs submits jobs of a step.
func (b *binding) jobs(step string, priority, n int) {
	b.t.Helper()
	sub := taskqueue.Submit{Run: 1}
	for i := range n {
		sub.Jobs = append(sub.Jobs, taskqueue.Job{Name: fmt.Sprintf("%s%d", step, i), Step: step, Priority: priority})
	}
	b.step(sub)
}

// begins has the pilot start what it was given first.
func (b *binding) begins(pilot taskqueue.PilotID) taskqueue.Assignment {
	b.t.Helper()
	if len(b.has[pilot]) == 0 {
		b.t.Fatalf("%s was given nothing", pilot)
	}
	a := b.has[pilot][0]
	b.sync(pilot, func(s *taskqueue.Sync) { s.Started = []taskqueue.AttemptRef{{Job: a.Job, Attempt: a.Attempt}} })
	return a
}

// runs has the pilot run what it was given first, for so long, and tell of its end.
func (b *binding) runs(pilot taskqueue.PilotID, took time.Duration) {
	b.t.Helper()
	a := b.begins(pilot)
	b.after(took)
	b.has[pilot] = b.has[pilot][1:]
	b.sync(pilot, func(s *taskqueue.Sync) {
		began := b.now.Add(-took)
		usage := taskqueue.Usage{StageInStart: began, Start: began, End: b.now, StageOutEnd: b.now}
		s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Usage: usage}}
	})
}

func (b *binding) names(pilot taskqueue.PilotID) (names []string) {
	for _, a := range b.has[pilot] {
		names = append(names, a.Name)
	}
	return names
}

// Jobs wait at a pilot for seconds, not by number: long ones and those of which nothing is known
// wait in the TaskQueue.
func TestJobsWaitAtAPilotForSeconds(t *testing.T) {
	for _, c := range []struct {
		took        time.Duration
		least, most int
	}{{10 * time.Minute, 1, 1}, {3 * time.Second, 1, 2}, {time.Millisecond, 10, 40}} {
		b := newBinding(t)
		b.jobs("s", 0, 300)
		b.sync("p", nil)
		b.sync("p", nil)
		if got := len(b.has["p"]); got != 1 {
			t.Errorf("%v: of a step that nobody knows it was given %d", c.took, got)
		}
		for range 40 {
			b.runs("p", c.took)
		}
		if got := len(b.has["p"]); got < c.least || got > c.most {
			t.Errorf("%v: %d jobs are at the pilot, want %d to %d", c.took, got, c.least, c.most)
		}
	}
}

// A job of a higher priority is given past those that wait, and says that it takes its turn first.
func TestHigherPriorityIsGivenPastTheOthers(t *testing.T) {
	b := newBinding(t)
	b.jobs("s", 0, 300)
	b.sync("p", nil)
	for range 40 {
		b.runs("p", 20*time.Millisecond)
	}
	b.jobs("urgent", 9, 1)
	b.runs("p", 20*time.Millisecond)
	i := slices.IndexFunc(b.has["p"], func(a taskqueue.Assignment) bool { return a.Name == "urgent0" })
	if i < 0 || b.has["p"][i].Priority != 9 || len(b.has["p"]) < 10 {
		t.Errorf("it has %v", b.names("p"))
	}
}

// A job that is alone ready is given to a pilot where it would begin before others that wait there, also if that is
// not soon. One of their priority waits in the TaskQueue for whoever is free first.
func TestAJobThatTakesItsTurnFirstDoesNotWaitInTheTaskQueue(t *testing.T) {
	for priority, given := range map[int]bool{0: false, 9: true} {
		b := newBinding(t)
		b.jobs("s", 0, 43)
		b.sync("p", nil)
		for range 40 {
			b.runs("p", 700*time.Millisecond)
		}
		b.begins("p")
		b.sync("other", nil) // takes what waits in the TaskQueue
		b.begins("other")
		if len(b.has["p"]) != 2 || len(b.has["other"]) != 1 {
			t.Fatalf("they have %v and %v", b.names("p"), b.names("other"))
		}
		b.jobs("new", priority, 1)
		b.sync("p", nil)
		if slices.Contains(b.names("p"), "new0") != given {
			t.Errorf("priority %d: the pilot has %v", priority, b.names("p"))
		}
	}
}

// What waits at a pilot goes to an idle one: at once if the first gives it back, after Silence if
// it does not, and after Silence too if its line is cut. What it runs stays.
func TestWhatWaitsIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		obeys bool
		cut   bool
		after time.Duration
	}{"obeys": {true, false, 0}, "refuses": {false, false, 5 * time.Second}, "silent": {false, true, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			b := newBinding(t)
			b.jobs("s", 0, 60)
			b.sync("p", nil)
			for range 40 {
				b.runs("p", 10*time.Millisecond)
			}
			running := b.begins("p")
			waiting := b.names("p")[1:]
			if len(waiting) < 5 {
				t.Fatalf("only %v wait", waiting)
			}
			if c.cut {
				b.step(taskqueue.HangUp{Pilot: "p", Seq: b.held["p"]})
			}
			rounds := 30 // less than the lease
			if c.obeys {
				rounds = 90
			}
			for range rounds { // an idle pilot that runs all that it gets
				b.sync("idle", nil)
				b.sync("idle", nil)
				if c.obeys {
					b.sync("p", func(s *taskqueue.Sync) {
						for _, a := range b.has["p"] {
							if b.asked[a.Attempt] {
								s.Ended = append(s.Ended, taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Ended})
							}
						}
					})
				}
				for len(b.has["idle"]) > 0 {
					b.runs("idle", 10*time.Millisecond)
				}
				if c.after > 0 {
					b.after(time.Second)
					if !c.cut {
						b.sync("p", nil)
					}
				}
			}
			for id := range b.core.Jobs(1, 0) {
				if id.Name == running.Name {
					if id.State != taskqueue.Running {
						t.Errorf("%s, which runs, is %v", id.Name, id.State)
					}
				} else if id.State != taskqueue.Done {
					t.Errorf("%s is %v", id.Name, id.State)
				}
			}
		})
	}
}

// A pilot is believed as far as its site says.
func TestAPilotHasWhatItsSiteSays(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.SetSite{Site: taskqueue.Site{
		Name: "far", MaxPilots: 1, Lease: 2 * time.Minute,
		Most: taskqueue.Resources{MilliCPUs: 2000, Countable: map[string]int64{"gpu": 1}},
	}})
	sub := taskqueue.Submit{Run: 1}
	for i := range 100 {
		sub.Jobs = append(sub.Jobs, taskqueue.Job{
			Name: fmt.Sprint("gpu", i), Step: "s",
			Needs: taskqueue.Resources{MilliCPUs: 10, Countable: map[string]int64{"gpu": 1}},
		})
	}
	b.step(sub)
	b.jobs("s", 0, 100)
	b.sync("liar", func(s *taskqueue.Sync) {
		s.Hello.Has = taskqueue.Resources{MilliCPUs: 1000 << 50, Countable: map[string]int64{"gpu": 1 << 50, "licence": 1}}
		s.Hello.Lease = 9 * 365 * 24 * time.Hour
	})
	b.sync("liar", nil)
	if got := b.names("liar"); !slices.Equal(got, []string{"gpu0", "s0"}) {
		t.Errorf("it was given %v", got)
	}
	b.step(taskqueue.HangUp{Pilot: "liar", Seq: b.held["liar"]})
	b.after(2*time.Minute + 30*time.Second)
	if n := len(b.core.Pilots()); n != 0 {
		t.Errorf("%d pilots are there after the lease of the site", n)
	}
}

// A pilot that says that it lives for ever gets no job that takes longer than its site lets it live,
// and gets no longer life by describing itself again.
func TestAPilotLivesAsLongAsItsSiteSays(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.SetSite{Site: taskqueue.Site{Name: "far", MaxPilots: 1, Most: taskqueue.Resources{Time: time.Hour}}})
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{
		{Name: "long", Step: "s", Needs: taskqueue.Resources{MilliCPUs: 1000, Time: 2 * time.Hour}},
		{Name: "short", Step: "s", Needs: taskqueue.Resources{MilliCPUs: 1000, Time: 35 * time.Minute}},
		{Name: "half", Step: "s", Needs: taskqueue.Resources{MilliCPUs: 1000, Time: 30 * time.Minute}},
	}})
	hello := func(s *taskqueue.Sync) {
		s.Hello = &taskqueue.PilotInfo{Host: "liar", Site: "far", Has: taskqueue.Resources{MilliCPUs: 1000}}
	}
	b.sync("liar", hello)
	b.sync("liar", nil)
	if got := b.names("liar"); !slices.Equal(got, []string{"short"}) {
		t.Errorf("it was given %v", got)
	}
	b.begins("liar")
	for range 20 {
		b.after(2 * time.Minute)
		b.sync("liar", hello)
	}
	b.runs("liar", time.Minute)
	b.sync("liar", hello)
	if got := b.names("liar"); len(got) > 0 {
		t.Errorf("with less than 20 minutes left it was given %v", got)
	}
}

// A job that becomes ready with the result of another does not go before one of higher priority
// that waits already, at the pilot that tells of the result.
func TestTheJobThatFollowsGoesAfterHigherPriority(t *testing.T) {
	b := newBinding(t)
	b.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{
		{Name: "first", Step: "s", Writes: []taskqueue.Output{{LFN: "x"}}},
		{Name: "next", Step: "s", Reads: []string{"x"}},
	}})
	b.sync("p", nil)
	b.jobs("urgent", 9, 1)
	a := b.begins("p")
	b.has["p"] = nil
	b.sync("p", func(s *taskqueue.Sync) {
		s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{{LFN: "x",
			PFN: "se:x"}}}}
	})
	if got := b.names("p"); len(got) != 1 || got[0] != "urgent0" {
		t.Errorf("it was given %v", got)
	}
}

// A job that failed on a host avoids it only while another could run it, and no longer than it may be passed
// over: when that goes, the pilot that is idle gets it at once.
func TestAHostIsNotAvoidedWhenItIsTheOnlyOne(t *testing.T) {
	for why, other := range map[string]func(*binding, taskqueue.Assignment){
		"the other has left": func(b *binding, long taskqueue.Assignment) {
			b.sync("other", func(s *taskqueue.Sync) {
				s.Ended, s.Leaving = []taskqueue.Result{{Job: long.Job, Attempt: long.Attempt}}, true
			})
		},
		"the other takes nothing more": func(b *binding, _ taskqueue.Assignment) {
			b.sync("other", func(s *taskqueue.Sync) { s.Draining = true })
		},
		"the other is silent": func(b *binding, _ taskqueue.Assignment) {
			b.step(taskqueue.HangUp{Pilot: "other", Seq: b.held["other"]})
			b.after(b.core.config.Silence)
		},
		"the other is busy for longer than a job is passed over": func(b *binding, _ taskqueue.Assignment) {
			for range 10 {
				b.after(b.core.config.MaxPassOver / 10)
				b.sync("other", nil)
				b.sync("p", nil)
			}
		},
	} {
		t.Run(why, func(t *testing.T) { avoided(t, other) })
	}
}

func avoided(t *testing.T, other func(*binding, taskqueue.Assignment)) {
	b := newBinding(t)
	b.jobs("s", 0, 1)
	b.sync("p", nil)
	b.sync("other", nil)
	b.sync("other", nil)
	b.jobs("long", 9, 1)
	a := b.begins("p")
	long := b.begins("other")
	b.has["p"] = nil
	b.sync("p", func(s *taskqueue.Sync) {
		s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.OutOfDisk, Message: "no room"}}
	})
	b.after(time.Minute)
	if got := b.names("p"); len(got) != 0 {
		t.Fatalf("it was given %v where it had failed", got)
	}
	b.sync("p", nil)
	other(b, long)
	b.after(0)
	if got := b.names("p"); len(got) != 1 {
		t.Errorf("it was given %v", got)
	}
}

// What a pilot should have begun goes to any other that is idle, but is not asked back where nobody
// is: it would only come back.
func TestLateAttemptsStayWhereNobodyIsIdle(t *testing.T) {
	b := newBinding(t)
	b.sync("p", func(s *taskqueue.Sync) { s.Hello.Has.MilliCPUs = 2000 })
	b.sync("p", nil)
	b.jobs("s", 0, 1)
	late := b.has["p"][0]
	b.sync("p", nil)
	b.after(overdueAfter*b.core.config.AheadTime - time.Second)
	b.jobs("t", 0, 1) // which begins as little, and is looked at when late has been for the second time
	b.sync("p", nil)
	for range 10 {
		b.after(time.Second)
		b.sync("p", nil)
	}
	if b.asked[late.Attempt] {
		t.Error("it was asked back, though nobody is idle")
	}
	b.sync("idle", nil)
	b.sync("idle", nil)
	b.sync("p", nil)
	if len(b.asked) != 1 || len(b.has["idle"]) != 1 {
		t.Errorf("%v were asked back, and the idle pilot has %v", b.asked, b.names("idle"))
	}
}

// Short jobs that become ready together go at once to pilots that were idle, also when there are more
// of them than slots, and fewer: none waits for the next Syncs of these.
func TestShortJobsGoAtOnce(t *testing.T) {
	for _, n := range []int{12, 40} { // no more wait at a pilot than it has ended
		b := newBinding(t)
		pilots := []taskqueue.PilotID{"p", "q", "r", "s"}
		for _, p := range pilots {
			b.sync(p, nil)
			b.sync(p, nil)
		}
		b.jobs("s", 0, 40)
		for range 10 {
			for _, p := range pilots {
				if len(b.has[p]) > 0 {
					b.runs(p, time.Millisecond)
				}
			}
		}
		for _, p := range pilots {
			for len(b.has[p]) > 0 {
				b.runs(p, time.Millisecond)
			}
			b.sync(p, nil)
		}
		given := 0
		b.step(taskqueue.Submit{Run: 1, Jobs: manyJobs("s", 100, n)})
		for _, p := range pilots {
			given += len(b.has[p])
		}
		if given != n {
			t.Errorf("%d of %d jobs were given out", given, n)
		}
	}
}

func manyJobs(step string, first, n int) (jobs []taskqueue.Job) {
	for i := range n {
		jobs = append(jobs, taskqueue.Job{Name: fmt.Sprint(step, first+i), Step: step})
	}
	return jobs
}

// How long jobs of a step take is known from other runs of the workflow of the same user, until one
// of this run has ended.
func TestAnotherRunOfAWorkflowIsKnown(t *testing.T) {
	for _, c := range []struct {
		name  string
		user  string
		known bool
	}{{"w", "", true}, {"another", "", false}, {"w", "stranger", false}} {
		b := newBinding(t)
		b.jobs("s", 0, 40)
		b.sync("p", nil)
		for range 40 {
			b.runs("p", time.Millisecond)
		}
		b.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 2, Name: c.name, Account: taskqueue.Account{User: c.user}}})
		b.step(taskqueue.Submit{Run: 2, Jobs: manyJobs("s", 0, 300)})
		b.sync("p", nil)
		if got := len(b.has["p"]); (got > 1) != c.known {
			t.Errorf("%+v: %d jobs are at the pilot", c, got)
		}
	}
}

// A job that waits at a pilot is taken back when its priority changes, and takes its turn there by the new one.
func TestWhatWaitsAtAPilotTakesItsNewTurn(t *testing.T) {
	b := newBinding(t)
	b.jobs("s", 0, 40)
	b.sync("p", nil)
	for range 8 { // it is known by then that they are short
		b.runs("p", 10*time.Millisecond)
	}
	first := b.begins("p")
	if len(b.has["p"]) < 3 {
		t.Fatalf("the pilot has %v", b.names("p"))
	}
	last := b.has["p"][len(b.has["p"])-1]
	b.step(taskqueue.Prioritize{Run: 1, Jobs: []taskqueue.JobID{first.Job, last.Job}, Priority: 4})
	b.sync("p", nil)
	if !b.asked[last.Attempt] || len(b.asked) != 1 {
		t.Fatalf("asked for are %v, not only %v", b.asked, last.Attempt)
	}
	b.sync("p", func(s *taskqueue.Sync) {
		s.Ended = []taskqueue.Result{{Job: last.Job, Attempt: last.Attempt, Outcome: taskqueue.Ended}}
	})
	at := slices.IndexFunc(b.has["p"], func(a taskqueue.Assignment) bool {
		return a.Job == last.Job &&
			a.Attempt != last.Attempt
	})
	if at < 0 {
		t.Fatalf("the pilot has %v", b.names("p"))
	}
	again := b.has["p"][at]
	if again.Priority != 4 {
		t.Errorf("the pilot has %+v in the end", again)
	}
}
