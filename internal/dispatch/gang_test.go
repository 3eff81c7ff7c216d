package dispatch

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairway/internal/explain"
	"fairway/internal/taskqueue"
)

// gangs is a binding whose pilots have several processors and tell of members of gangs.
type gangs struct {
	*binding
	begun map[taskqueue.AttemptID]taskqueue.GangStart
}

func newGangs(t *testing.T, jobs ...taskqueue.Job) *gangs {
	g := &gangs{newBinding(t), map[taskqueue.AttemptID]taskqueue.GangStart{}}
	if len(jobs) > 0 {
		g.submit(jobs...)
	}
	return g
}

func (g *gangs) submit(jobs ...taskqueue.Job) {
	g.t.Helper()
	g.take(g.step(taskqueue.Submit{Run: 1, Jobs: jobs}))
}

func (g *gangs) take(e taskqueue.Effects) {
	for _, r := range e.Replies {
		for _, b := range r.Answer.Begin {
			g.begun[b.Attempt] = b
		}
	}
}

// calls has a pilot with so many processors call, with what change adds.
func (g *gangs) calls(pilot taskqueue.PilotID, cpus int64, change func(*taskqueue.Sync)) {
	g.t.Helper()
	g.seq[pilot]++
	s := taskqueue.Sync{Pilot: pilot, Seq: g.seq[pilot], LastAnswer: g.last[pilot], Hold: true}
	if g.last[pilot] == 0 {
		s.Full, s.Hello = true, &taskqueue.PilotInfo{Host: string(pilot), Site: "far",
			Has: taskqueue.Resources{MilliCPUs: 1000 * cpus}}
	}
	for _, a := range g.has[pilot] {
		s.Started = append(s.Started, taskqueue.AttemptRef{Job: a.Job, Attempt: a.Attempt, GangPlace: a.GangPlace})
	}
	if change != nil {
		change(&s)
	}
	g.take(g.step(s))
	if err := g.core.verify(); err != nil {
		g.t.Fatal(err)
	}
	if err := g.core.CheckBinding(); err != nil {
		g.t.Fatal(err)
	}
}

// readies has a pilot tell that its members are ready.
func (g *gangs) readies(pilots ...taskqueue.PilotID) {
	g.t.Helper()
	for _, p := range pilots {
		g.calls(p, 0, func(s *taskqueue.Sync) {
			for _, a := range g.has[p] {
				if a.Tasks > 0 {
					_, begun := g.begun[a.Attempt]
					s.Members = append(s.Members, taskqueue.MemberState{
						Attempt: a.Attempt, Host: "10.0.0.1", Ports: []int{1, 2}, Begun: begun,
					})
				}
			}
		})
	}
}

// tellsEnd has a pilot tell of the end of what it was given first.
func (g *gangs) tellsEnd(pilot taskqueue.PilotID, o taskqueue.Outcome) {
	g.t.Helper()
	a := g.has[pilot][0]
	g.has[pilot] = g.has[pilot][1:]
	g.calls(pilot, 0, func(s *taskqueue.Sync) {
		began := g.now.Add(-time.Minute)
		if strings.HasPrefix(a.Name, "long") {
			began = g.now.Add(-time.Hour)
		}
		s.Ended = []taskqueue.Result{{
			Job: a.Job, Attempt: a.Attempt, GangPlace: a.GangPlace, Outcome: o,
			Usage: taskqueue.Usage{StageInStart: began, Start: began, End: g.now, StageOutEnd: g.now},
		}}
	})
}

func (g *gangs) state(job uint32) taskqueue.State {
	v, _ := g.core.Job(taskqueue.NewJobID(1, job))
	return v.State
}

func (g *gangs) count(name string, pilots ...taskqueue.PilotID) (n int) {
	for _, p := range pilots {
		for _, has := range g.names(p) {
			if has == name {
				n++
			}
		}
	}
	return n
}

func TestAGangIsGivenOutTogetherOrNotAtAll(t *testing.T) {
	g := newGangs(t, taskqueue.Job{Name: "small", Step: "s"}, taskqueue.Job{Name: "gang", Step: "g", Tasks: 3})
	g.calls("p", 2, nil)
	g.calls("q", 1, nil)
	if g.count("small", "p") != 1 || g.count("gang", "p", "q") != 0 {
		t.Fatalf("p has %v, q has %v", g.names("p"), g.names("q"))
	}
	e, _ := g.core.Explain(taskqueue.NewJobID(1, 2))
	if text := strings.Join(explain.Lines(&e), "\n"); !strings.Contains(text, "3 tasks begin together") ||
		!strings.Contains(text, "room is kept for 2 of them") {
		t.Error(text)
	}
	g.tellsEnd("p", taskqueue.Succeeded)
	g.calls("q", 1, nil)
	if g.count("gang", "p") != 2 || g.count("gang", "q") != 1 {
		t.Fatalf("p has %v, q has %v", g.names("p"), g.names("q"))
	}
	all := append(slices.Clone(g.has["p"]), g.has["q"]...)
	for task, a := range all {
		if a.Task != task || a.Tasks != 3 || a.Attempt != a.Leader+taskqueue.AttemptID(task) {
			t.Errorf("task %d is %+v", task, a.GangPlace)
		}
	}
	g.readies("p")
	if len(g.begun) > 0 {
		t.Fatal("some begin before all are ready")
	}
	g.readies("q")
	g.readies("p")
	if len(g.begun) != 3 || len(g.begun[all[0].Attempt].Members) != 3 {
		t.Fatalf("%+v begin", g.begun)
	}
	g.tellsEnd("q", taskqueue.Succeeded)
	g.tellsEnd("p", taskqueue.Succeeded)
	if g.state(2) != taskqueue.Running {
		t.Fatalf("with a task that runs it is %v", g.state(2))
	}
	if g.tellsEnd("p", taskqueue.Succeeded); g.state(2) != taskqueue.Done {
		t.Errorf("it is %v", g.state(2))
	}
}

// begins has a gang of two begin at p and q.
func begunGang(t *testing.T, job taskqueue.Job) *gangs {
	job.Name, job.Step, job.Tasks = "gang", "g", 2
	g := newGangs(t, job)
	g.calls("p", 1, nil)
	g.calls("q", 1, nil)
	g.calls("p", 1, nil)
	g.readies("p", "q", "p")
	if len(g.begun) != 2 {
		t.Fatalf("%+v begin", g.begun)
	}
	return g
}

func TestTheFailureOfOneEndsAndRetriesAll(t *testing.T) {
	for _, o := range []taskqueue.Outcome{taskqueue.Exited, taskqueue.Lost, taskqueue.Ended, taskqueue.OutOfTime,
		taskqueue.StageInFailed} {
		g := begunGang(t, taskqueue.Job{Retry: taskqueue.Retry{Attempts: 2}})
		first, second := g.has["p"][0], g.has["q"][0]
		g.tellsEnd("q", o)
		g.calls("p", 1, nil)
		if !g.asked[first.Attempt] {
			t.Fatalf("%v: the other one is not ended", o)
		}
		g.has["p"] = slices.DeleteFunc(g.has["p"], func(a taskqueue.Assignment) bool { return a.Attempt == first.Attempt })
		g.after(2 * time.Second)
		g.calls("p", 1, func(s *taskqueue.Sync) {
			// it comes too late
			s.Ended = []taskqueue.Result{{Job: first.Job, Attempt: first.Attempt, GangPlace: first.GangPlace}}
		})
		g.calls("q", 1, nil)
		g.calls("p", 1, nil)
		if g.count("gang", "p") != 1 || g.count("gang", "q") != 1 {
			t.Fatalf("%v: p has %v, q has %v, and the job is %v", o, g.names("p"), g.names("q"), g.state(1))
		}
		if again := g.has["p"][0]; again.Leader == first.Leader || again.Leader == second.Leader {
			t.Errorf("%v: the gang has the number %d again", o, again.Leader)
		}
	}
}

func TestALostPilotEndsItsGang(t *testing.T) {
	g := begunGang(t, taskqueue.Job{})
	first := g.has["p"][0]
	g.step(taskqueue.PilotEnded{Launch: launchName("q", "")})
	g.calls("p", 1, nil)
	if !g.asked[first.Attempt] || g.state(1) != taskqueue.Ready {
		t.Errorf("the other task is asked to end: %v; the job is %v", g.asked[first.Attempt], g.state(1))
	}
}

// Before its commands have begun, a gang leaves a pilot that falls silent.
func TestAGangLeavesASilentPilot(t *testing.T) {
	g := newGangs(t, taskqueue.Job{Name: "gang", Step: "g", Tasks: 2})
	g.calls("p", 1, nil)
	g.calls("q", 1, nil)
	g.readies("p")
	if g.count("gang", "q") != 1 {
		t.Fatal("it is not given out")
	}
	for range 10 {
		g.after(5 * time.Second)
	}
	if g.state(1) != taskqueue.Ready {
		t.Errorf("it is %v", g.state(1))
	}
}

func TestOnceTheFirstTaskDecides(t *testing.T) {
	g := begunGang(t, taskqueue.Job{Once: true})
	first, second := "p", "q"
	if g.has["p"][0].Task != 0 {
		first, second = "q", "p"
	}
	other := g.has[taskqueue.PilotID(second)][0]
	if g.tellsEnd(taskqueue.PilotID(first), taskqueue.Succeeded); g.state(1) != taskqueue.Done {
		t.Fatalf("it is %v", g.state(1))
	}
	g.calls(taskqueue.PilotID(second), 1, nil)
	if !g.asked[other.Attempt] {
		t.Error("the other task goes on")
	}
}

// What is shorter than the wait for the rest of a gang fills the gap, and nothing else does.
func TestShortJobsFillTheGap(t *testing.T) {
	g := newGangs(t, taskqueue.Job{Name: "long0", Step: "long"}, taskqueue.Job{Name: "short0", Step: "short"})
	g.calls("p", 1, nil)
	g.tellsEnd("p", taskqueue.Succeeded)
	g.tellsEnd("p", taskqueue.Succeeded)
	g.calls("q", 1, nil)
	g.submit(taskqueue.Job{Name: "running", Step: "long"})
	holder, free := taskqueue.PilotID("p"), taskqueue.PilotID("q")
	if g.calls("p", 1, nil); g.count("running", "p") != 1 {
		holder, free = "q", "p"
	}
	g.calls(holder, 1, nil)
	g.after(20 * time.Second)
	g.submit(taskqueue.Job{Name: "gang", Step: "g", Tasks: 2}, taskqueue.Job{Name: "long1", Step: "long"},
		taskqueue.Job{Name: "short1", Step: "short"})
	g.calls(free, 1, nil)
	if names := g.names(free); !slices.Equal(names, []string{"short1"}) {
		e, _ := g.core.Explain(taskqueue.NewJobID(1, 6))
		t.Fatalf("the free pilot has %v, since %v", names, explain.Lines(&e))
	}
	g.tellsEnd(free, taskqueue.Succeeded)
	if names := g.names(free); len(names) > 0 {
		t.Fatalf("the free pilot has %v", names)
	}
	g.tellsEnd(holder, taskqueue.Succeeded)
	g.calls(free, 1, nil)
	if g.count("gang", holder, free) != 2 {
		t.Errorf("they have %v and %v", g.names(holder), g.names(free))
	}
}

// One gang at a time gathers at a site, and one of a higher priority takes its place.
func TestAnUrgentGangGathersFirst(t *testing.T) {
	g := newGangs(t, taskqueue.Job{Name: "a", Step: "s"}, taskqueue.Job{Name: "b", Step: "s"},
		taskqueue.Job{Name: "patient", Step: "g", Tasks: 2})
	g.calls("p", 1, nil)
	g.calls("q", 1, nil)
	gathers := func(name string) {
		t.Helper()
		if all := g.core.placement.gatherings; len(all) != 1 || all[0].job.name != name {
			t.Fatalf("%d gangs gather, and not %s", len(all), name)
		}
	}
	gathers("patient")
	g.submit(taskqueue.Job{Name: "later", Step: "g", Tasks: 2}, taskqueue.Job{Name: "urgent", Step: "g", Tasks: 2,
		Priority: 1})
	gathers("urgent")
	g.tellsEnd("p", taskqueue.Succeeded)
	g.tellsEnd("q", taskqueue.Succeeded)
	g.calls("p", 1, nil)
	if g.count("urgent", "p", "q") != 2 {
		t.Fatalf("they have %v and %v", g.names("p"), g.names("q"))
	}
	gathers("patient")
}

// A gang of tasks apart has a host of its own for each.
func TestTasksApart(t *testing.T) {
	g := newGangs(t, taskqueue.Job{Name: "gang", Step: "g", Tasks: 2, Apart: true})
	if g.calls("p", 4, nil); g.count("gang", "p") != 0 {
		t.Fatal("both tasks are on one host")
	}
	g.calls("q", 4, nil)
	g.calls("p", 4, nil)
	if g.count("gang", "p") != 1 || g.count("gang", "q") != 1 {
		t.Errorf("they have %v and %v", g.names("p"), g.names("q"))
	}
}

func TestQuotasAndLimitsCountAllTasks(t *testing.T) {
	g := newGangs(t)
	g.step(taskqueue.SetShares{Shares: taskqueue.Shares{Limits: map[string]int64{"licence": 5}, Of: []taskqueue.Share{
		{Name: "ann", User: true, Weight: 1, Limits: taskqueue.Quota{Running: 3}},
	}}})
	g.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 2, Name: "ann's", Account: taskqueue.Account{User: "ann"},
		KeepGoing: true}})
	g.step(taskqueue.Submit{Run: 2, Jobs: []taskqueue.Job{{Name: "four", Step: "g", Tasks: 4}, {Name: "three", Step: "g",
		Tasks: 3}}})
	g.calls("p", 4, nil)
	if g.count("four", "p") != 0 || g.count("three", "p") != 3 {
		t.Fatalf("p has %v", g.names("p"))
	}
	needs := taskqueue.Resources{Countable: map[string]int64{"licence": 2}}
	g.submit(taskqueue.Job{Name: "greedy", Step: "g", Tasks: 3, Needs: needs})
	g.submit(taskqueue.Job{Name: "modest", Step: "g", Tasks: 2, Needs: needs})
	g.calls("q", 4, nil)
	if g.count("greedy", "q") != 0 || g.count("modest", "q") != 2 {
		t.Errorf("q has %v", g.names("q"))
	}
}

// A gang may take all that a limit permits, and goes before jobs of a lower priority that would take its
// room.
func TestAGangTakesAllOfALimitInItsTurn(t *testing.T) {
	g := newGangs(t)
	g.step(taskqueue.SetShares{Shares: taskqueue.Shares{Limits: map[string]int64{"licence": 2}}})
	g.submit(taskqueue.Job{Name: "single", Step: "s"}, taskqueue.Job{Name: "other", Step: "s"},
		taskqueue.Job{Name: "gang", Step: "g", Tasks: 2, Priority: 5,
			Needs: taskqueue.Resources{Countable: map[string]int64{"licence": 1}}})
	g.calls("p", 2, nil)
	if g.count("gang", "p") != 2 {
		t.Errorf("p has %v", g.names("p"))
	}
	members := g.core.fleet.gangs[g.core.jobs.find(taskqueue.NewJobID(1, 3))]
	for _, none := range []int{-1, 2, 1 << 30} {
		if members.succeeded(none); members.ended != 0 {
			t.Errorf("task %d has ended", none)
		}
	}
}

// What simulations look for is noticed: gangs of which a part is lost, and room that is kept without need.
func TestBrokenGangsAreNoticed(t *testing.T) {
	begun := func() *gangs {
		g := newGangs(t, taskqueue.Job{Name: "gang", Step: "g", Tasks: 2})
		g.calls("p", 2, nil)
		return g
	}
	for want, spoil := range map[string]func(c *Core, j *job, g *gang){
		"a gang that is over":  func(c *Core, j *job, _ *gang) { delete(c.fleet.gangs, j) },
		"is at no pilot":       func(_ *Core, _ *job, g *gang) { g.members[1] = nil },
		"is another one":       func(_ *Core, _ *job, g *gang) { g.members[0], g.members[1] = g.members[1], g.members[0] },
		"not all were ready":   func(_ *Core, _ *job, g *gang) { g.members[0].begun = true },
		"ready, and do not be": func(_ *Core, _ *job, g *gang) { g.where[0].Host, g.where[1].Host = "a", "b" },
	} {
		g := begun()
		j := g.core.jobs.find(taskqueue.NewJobID(1, 1))
		spoil(g.core, j, g.core.fleet.gangs[j])
		if err := g.core.CheckLiveness(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for want, spoil := range map[string]func(p *pilot, gathers *gathering){
		"gathers 3 tasks of 2": func(p *pilot, gathers *gathering) { gathers.at[p] = 3 },
		"which is waiting":     func(_ *pilot, gathers *gathering) { gathers.job.group, gathers.job.state = nil, taskqueue.Waiting },
		"not kept for it":      func(p *pilot, _ *gathering) { p.seat.gathering = nil },
		"does not gather":      func(_ *pilot, gathers *gathering) { gathers.at = nil },
	} {
		g := newGangs(t, taskqueue.Job{Name: "small", Step: "s", Priority: 1},
			taskqueue.Job{Name: "gang", Step: "g", Tasks: 2})
		g.calls("p", 2, nil)
		p := g.core.fleet.pilots["p"]
		if p.seat.gathering == nil {
			t.Fatal("no room is kept")
		}
		spoil(p, p.seat.gathering)
		if err := g.core.placement.checkGatherings(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestGangsThatCannotBeAreRefused(t *testing.T) {
	g := newGangs(t, taskqueue.Job{Name: "cached", Step: "s", Writes: []taskqueue.Output{{LFN: "c",
		Storage: taskqueue.StorageCache}}})
	for _, j := range []taskqueue.Job{
		{Name: "a", Tasks: -1},
		{Name: "a", Tasks: taskqueue.MaxTasks + 1},
		{Name: "a", Tasks: 2, Needs: taskqueue.Resources{GPUShare: 500}},
		{Name: "a", Tasks: 2, Writes: []taskqueue.Output{{LFN: "x", Storage: taskqueue.StorageCache}}},
		{Name: "a", Tasks: 2, Reads: []string{"c"}},
	} {
		if _, err := g.core.Step(g.now, taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{j}}); err == nil {
			t.Errorf("%+v is taken", j)
		}
	}
}

// A gang is not passed over for ever, whatever comes: its turn comes after Config.MaxPassOver.
func TestAGangIsNotPassedOverForEver(t *testing.T) {
	g := newGangs(t, taskqueue.Job{Name: "gang", Step: "g", Tasks: 3})
	began := g.now
	for round := 0; g.now.Sub(began) < 15*time.Minute; round++ {
		name := "urgent" + strconv.Itoa(round)
		g.submit(taskqueue.Job{Name: name, Step: "s", Priority: 1}, taskqueue.Job{Name: name + "b", Step: "s", Priority: 1})
		for i, p := range []taskqueue.PilotID{"p", "q"} {
			if g.count("gang", p) > 0 {
				if waited := g.now.Sub(began); waited > 11*time.Minute {
					t.Errorf("it has waited for %v", waited)
				}
				return
			}
			if len(g.has[p]) > 0 && round%2 == i {
				g.tellsEnd(p, taskqueue.Succeeded)
			}
			g.calls(p, int64(i+1), nil)
		}
		g.after(4 * time.Second)
	}
	e, _ := g.core.Explain(taskqueue.NewJobID(1, 1))
	t.Errorf("it waits for ever: %v", explain.Lines(&e))
}

// A task that ended while the server was down is not waited for by one that has not begun: nobody
// knows any more where it was.
func TestAGangOfWhichOneEndedWhileTheServerWasDown(t *testing.T) {
	c := newCrashing(t)
	c.step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1, KeepGoing: true}})
	c.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "gang", Step: "g", Tasks: 2}}})
	given := c.all()
	if len(given) != 2 {
		t.Fatalf("given are %+v", given)
	}
	c.crash()
	ref := func(a taskqueue.Assignment) taskqueue.AttemptRef {
		return taskqueue.AttemptRef{Job: a.Job, Attempt: a.Attempt, GangPlace: a.GangPlace}
	}
	c.seq++
	e := c.step(taskqueue.Sync{
		Pilot: "p", Seq: c.seq, Full: true, Hello: &taskqueue.PilotInfo{Host: "h", Has: taskqueue.Resources{MilliCPUs: 2000}},
		Ended: []taskqueue.Result{{
			Job: given[0].Job, Attempt: given[0].Attempt, GangPlace: given[0].GangPlace, Outcome: taskqueue.Succeeded,
		}},
		Started: []taskqueue.AttemptRef{ref(given[1])},
		Members: []taskqueue.MemberState{{Attempt: given[1].Attempt, Host: "h", Ports: []int{1, 2}}},
	})
	if len(e.Replies) != 1 || !slices.Contains(e.Replies[0].Answer.End, given[1].Attempt) {
		t.Errorf("the task that waits is not ended: %+v", e.Replies)
	}
}

// Whoever asks is told of each task where it is and how far it has come, and which of them failed.
func TestWhatIsToldOfTasks(t *testing.T) {
	g := newGangs(t, taskqueue.Job{Name: "gang", Step: "g", Tasks: 2, Retry: taskqueue.Retry{Attempts: 1}})
	g.calls("p", 1, nil)
	g.calls("q", 1, nil)
	g.calls("p", 1, nil)
	first, second := taskqueue.PilotID("p"), taskqueue.PilotID("q")
	if g.has["p"][0].Task != 0 {
		first, second = second, first
	}
	tells := func(phases []taskqueue.Phase, lines ...string) {
		t.Helper()
		v, _ := g.core.Job(taskqueue.NewJobID(1, 1))
		e, _ := g.core.Explain(taskqueue.NewJobID(1, 1))
		if v.Tasks != 2 || len(v.Attempts) != len(phases) || len(explain.Lines(&e)) != len(lines) {
			t.Fatalf("told are %+v and %q", v, explain.Lines(&e))
		}
		for i, a := range v.Attempts {
			if want := phases[i]; a.Phase != want || a.Task != 2-len(phases)+i {
				t.Errorf("attempt %d is %v, as task %d; want %v", i, a.Phase, a.Task, want)
			}
		}
		for i, want := range lines {
			if !strings.Contains(explain.Lines(&e)[i], want) {
				t.Errorf("line %d is %q; want %q", i, explain.Lines(&e)[i], want)
			}
		}
	}
	g.calls(second, 1, nil)
	g.calls(first, 1, nil)
	tells([]taskqueue.Phase{taskqueue.PhaseStaging, taskqueue.PhaseStaging}, "task 0 of attempt 1 gets its inputs",
		"task 1 of attempt 1 gets its inputs")
	g.readies(second)
	tells([]taskqueue.Phase{taskqueue.PhaseStaging, taskqueue.PhaseReady}, "task 0 of attempt 1 gets its inputs",
		"task 1 of attempt 1 is ready on")
	g.readies(first, second)
	tells([]taskqueue.Phase{taskqueue.PhaseRunning, taskqueue.PhaseRunning}, "task 0 of attempt 1 runs on",
		"task 1 of attempt 1 runs on")
	g.tellsEnd(first, taskqueue.Succeeded)
	tells([]taskqueue.Phase{taskqueue.PhaseRunning}, "task 1 of attempt 1 runs on", "task 0 has succeeded")
	g.tellsEnd(second, taskqueue.Lost)
	v, _ := g.core.Job(taskqueue.NewJobID(1, 1))
	if !strings.HasPrefix(v.Reason, "task 1: ") {
		t.Errorf("it failed for the reason %q", v.Reason)
	}
}

// With many pilots a gang that gathers does not look at all of them whenever an attempt ends, and is given
// out all the same as soon as there is room for all of it.
func TestAGangGathersAmongManyPilots(t *testing.T) {
	g := newGangs(t)
	var singles []taskqueue.Job
	for i := range manyPilots + 2 {
		singles = append(singles, taskqueue.Job{Name: "a" + strconv.Itoa(i), Step: "s"})
	}
	g.submit(singles...)
	pilot := func(i int) taskqueue.PilotID { return taskqueue.PilotID("p" + strconv.Itoa(i)) }
	for i := range singles {
		g.calls(pilot(i), 1, nil)
	}
	g.submit(taskqueue.Job{Name: "gang", Step: "g", Tasks: 2})
	gathers := func() *gathering {
		t.Helper()
		if all := g.core.placement.gatherings; len(all) == 1 {
			return all[0]
		}
		t.Fatalf("%d gangs gather", len(g.core.placement.gatherings))
		return nil
	}
	gt := gathers()
	moves := gt.moves
	g.tellsEnd(pilot(0), taskqueue.Succeeded)
	if gt.moves != moves {
		t.Error("all pilots are looked at in the same moment again")
	}
	g.tellsEnd(pilot(1), taskqueue.Succeeded)
	if g.count("gang", pilot(0)) != 1 {
		g.calls(pilot(0), 1, nil)
	}
	if n := g.count("gang", pilot(0), pilot(1)); n != 2 {
		t.Errorf("%d tasks are given out", n)
	}
}
