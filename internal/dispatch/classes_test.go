package dispatch

import (
	"errors"
	"fmt"
	"testing"

	"fairway/internal/dispatch/room"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// A share of a GPU is counted beside whole ones, and in a pool, where it is none of pilots, as one.
func TestSharesOfGPUsAreCounted(t *testing.T) {
	c, _ := New(taskqueue.Config{})
	step := func(in taskqueue.Input) taskqueue.Effects {
		t.Helper()
		e, err := c.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1}})
	step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{
		{Name: "a", Step: "s", Needs: taskqueue.Resources{MilliCPUs: 1, GPUShare: 600}},
		{Name: "b", Step: "s", Needs: taskqueue.Resources{MilliCPUs: 1, GPUShare: 600}},
		{Name: "c", Step: "s", Needs: taskqueue.Resources{MilliCPUs: 1, Countable: map[string]int64{quantity.GPU: 1}}},
	}})
	for _, needs := range []taskqueue.Resources{
		{GPUShare: quantity.WholeGPU},
		{GPUShare: -1},
		{GPUShare: 1, Countable: map[string]int64{quantity.GPU: 1}},
		{Countable: map[string]int64{"licence": -1}},
	} {
		if _, err := c.Step(epoch, taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "wrong", Step: "s",
			Needs: needs}}}); err == nil {
			t.Errorf("%+v was taken", needs)
		}
	}
	has := taskqueue.Resources{MilliCPUs: 1000, Countable: map[string]int64{quantity.GPU: 1}}
	step(taskqueue.Sync{Pilot: "p", Seq: 1, Full: true, Hello: &taskqueue.PilotInfo{Host: "h", Has: has}})
	p, job := c.fleet.pilots["p"], func(n uint32) *job { return c.jobs.find(taskqueue.NewJobID(1, n)) }
	p.room = room.Room{Has: &p.info.Has}
	p.room.Add(&job(1).class.takes, 1)
	if p.room.Fits(&job(2).class.takes, 1) || p.room.Fits(&job(3).class.takes, 1) || !p.room.Fits(&job(2).class.takes, 2) {
		t.Error("0.6 of a GPU leave room for more than 0.4")
	}
	if why := fmt.Sprint(p.room.Lacks(&job(2).class.takes)); why != "[{gpu 0 600 400}]" {
		t.Error(why)
	}
	step(taskqueue.SetShares{Shares: taskqueue.Shares{Limits: map[string]int64{quantity.GPU: 4}}})
	for n, want := range map[uint32]int64{2: 1, 3: 1} {
		cl := job(n).class
		if len(cl.pools) != 1 || cl.pools[0].N != want || len(cl.takes.Countable) != 0 || cl.needsOfPilot().GPUShare != 0 {
			t.Errorf("job %d needs %+v of pools, %+v and %+v of pilots", n, cl.pools, cl.takes.Countable, cl.needsOfPilot())
		}
	}
}

// What only jobs of retired runs have needed is forgotten where there is much of it, with what was
// known of it, and its place is taken by what others need.
func TestClassesGoWithTheirRuns(t *testing.T) {
	// Run 1 stays, with one job, which needs to avoid a host once its pilot has lost it.
	const classes, stays = 100, 2
	c, _ := New(taskqueue.Config{})
	step := func(in taskqueue.Input) taskqueue.Effects {
		t.Helper()
		e, err := c.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	has := taskqueue.Resources{MilliCPUs: 1000, Memory: classes / 2}
	seq := uint64(1)
	step(taskqueue.Sync{Pilot: "p", Seq: seq, Full: true, Hello: &taskqueue.PilotInfo{Host: "h", Has: has}})
	step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1}})
	step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: "stays", Step: "s",
		Needs: taskqueue.Resources{Memory: 1}}}})
	for run := taskqueue.RunID(2); run < 6; run++ {
		step(taskqueue.SetRun{Run: taskqueue.Run{ID: run}})
		in := taskqueue.Submit{Run: run}
		for i := range classes {
			// Other needs in each run, most of which the pilot does not have; so what is known of an
			// index must not be taken for its next class.
			memory := int64(i) + int64(run%2)*classes
			in.Jobs = append(in.Jobs, taskqueue.Job{Name: fmt.Sprint(i), Step: "s", Needs: taskqueue.Resources{Memory: memory}})
		}
		step(in)
		for i := range classes {
			j := c.jobs.find(taskqueue.NewJobID(run, uint32(i+1)))
			p := c.fleet.pilots["p"]
			if fits, should := p.fits(j.class), j.class.needs.Memory <= has.Memory; fits != should {
				t.Fatalf("run %d: that %d bytes fit is %t", run, j.class.needs.Memory, fits)
			}
		}
		if n := len(c.jobs.byIndex); n > classes+2*stays {
			t.Fatalf("run %d: there are %d classes", run, n)
		}
		step(taskqueue.StopRun{Run: run})
		seq++
		step(taskqueue.Sync{
			Pilot: "p", Seq: seq, Full: true, Hello: &taskqueue.PilotInfo{Host: "h", Has: has}, LastAnswer: 1 << 40,
		})
		step(taskqueue.RetireRun{Run: run})
		c.dropClasses(0)
		groups := 0
		for s := range c.shares.All {
			groups += len(s.Own.groups)
		}
		if len(c.jobs.classes) > stays || groups > stays {
			t.Fatalf("after run %d, %d classes and %d groups are left", run, len(c.jobs.classes), groups)
		}
	}
}

// Jobs that need more different things than there may be are refused as a whole.
func TestClassesAreBounded(t *testing.T) {
	c := withRun(t, taskqueue.Config{})
	c.jobs.mostClasses = 1000
	in := taskqueue.Submit{Run: 1}
	for i := range c.jobs.mostClasses + 1 {
		in.Jobs = append(in.Jobs, taskqueue.Job{Name: fmt.Sprint(i), Step: "s", Needs: taskqueue.Resources{Memory: int64(i)}})
	}
	if _, err := c.Step(epoch, in); !errors.Is(err, taskqueue.ErrRefused) {
		t.Fatalf("%d classes: %v", len(in.Jobs), err)
	}
	in.Jobs[c.jobs.mostClasses].Needs.Memory = 0
	if _, err := c.Step(epoch, in); err != nil {
		t.Fatal(err)
	}
}
