package dispatch

import (
	"slices"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// fleetOf has pilots that run jobs of a fixed time, second by second.
type fleetOf struct {
	*binding
	took   time.Duration
	ends   map[taskqueue.PilotID]time.Time // of what a pilot runs
	begun  map[string][]taskqueue.PilotID  // of each job: where it began, in order
	begins map[string]time.Time            // when it did so last
}

func newFleetOf(t *testing.T, took time.Duration) *fleetOf {
	return &fleetOf{newBinding(t), took, map[taskqueue.PilotID]time.Time{}, map[string][]taskqueue.PilotID{},
		map[string]time.Time{}}
}

// second lets a second pass, at whose end the pilots call that have something to tell.
func (f *fleetOf) second(pilots ...taskqueue.PilotID) {
	f.after(time.Second)
	for _, p := range pilots {
		if end := f.ends[p]; !end.IsZero() && !f.now.Before(end) {
			a := f.has[p][0]
			f.has[p], f.ends[p] = f.has[p][1:], time.Time{}
			f.sync(p, func(s *taskqueue.Sync) {
				began := f.now.Add(-f.took)
				usage := taskqueue.Usage{StageInStart: began, Start: began, End: f.now, StageOutEnd: f.now}
				s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Usage: usage}}
			})
		}
		f.givesBack(p)
		if f.ends[p].IsZero() && len(f.has[p]) > 0 {
			a := f.binding.begins(p)
			f.ends[p] = f.now.Add(f.took)
			f.begun[a.Name], f.begins[a.Name] = append(f.begun[a.Name], p), f.now
		}
		if f.held[p] == 0 {
			f.sync(p, nil)
		}
	}
}

// givesBack has a pilot give back what it was asked for and has not begun.
func (f *fleetOf) givesBack(p taskqueue.PilotID) {
	waits := func(a taskqueue.Assignment) bool {
		return f.asked[a.Attempt] && (f.ends[p].IsZero() || a.Attempt != f.has[p][0].Attempt)
	}
	var back []taskqueue.Result
	for _, a := range f.has[p] {
		if waits(a) {
			back = append(back, taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: taskqueue.Ended})
		}
	}
	if len(back) > 0 {
		f.has[p] = slices.DeleteFunc(f.has[p], waits)
		f.sync(p, func(s *taskqueue.Sync) { s.Ended = back })
	}
}

func (f *fleetOf) done() (n int) {
	for job := range f.core.Jobs(1, 0) {
		if job.State == taskqueue.Done {
			n++
		}
	}
	return n
}

// A node that dies costs the attempts that ran there, which begin again within a minute, and nothing
// else: no other job begins twice, and the other pilot never stands idle. The lease of the dead pilot
// is hours; its batch system tells of it after 25 s, as Slurm does.
func TestADeadNodeCostsWhatRanThere(t *testing.T) {
	const jobs, told = 40, 25
	for dies := range 30 { // seconds after the first second
		f := newFleetOf(t, 6*time.Second)
		f.step(taskqueue.SetSite{Site: taskqueue.Site{Name: "far", MaxPilots: 2, Lease: 3 * time.Hour}})
		f.jobs("s", 0, jobs)
		for _, p := range []taskqueue.PilotID{"dead", "other"} {
			f.step(taskqueue.PilotSubmitted{Site: "far", Launch: string(p)})
			f.sync(p, func(s *taskqueue.Sync) { s.Hello.Launch, s.Hello.Lease = string(p), 3*time.Hour })
		}
		for range 1 + dies {
			f.second("dead", "other")
		}
		var ran []string
		if !f.ends["dead"].IsZero() {
			ran = append(ran, f.has["dead"][0].Name)
		}
		died := f.now
		f.step(taskqueue.HangUp{Pilot: "dead", Seq: f.held["dead"]})
		idle := 0
		for s := 0; f.done() < jobs; s++ {
			if s == told {
				f.step(taskqueue.PilotEnded{Launch: "dead", Reason: "NODE_FAIL"})
			}
			if s > 600 {
				t.Fatalf("died after %d s: %d of %d jobs are done after ten minutes", dies, f.done(), jobs)
			}
			f.second("other")
			if f.ends["other"].IsZero() && f.done() < jobs {
				idle++
			}
		}
		if idle > 0 {
			t.Errorf("died after %d s: the other pilot was idle for %d s", dies, idle)
		}
		for name, where := range f.begun {
			again := slices.Contains(ran, name)
			if len(where) > 1 != again || again && f.begins[name].Sub(died) > time.Minute {
				t.Errorf("died after %d s with %v: %s began at %v, the last time %v after", dies, ran, name, where,
					f.begins[name].Sub(died))
			}
		}
	}
}
