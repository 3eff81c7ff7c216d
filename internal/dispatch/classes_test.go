package dispatch

import (
	"errors"
	"fmt"
	"testing"
)

// What only jobs of retired runs have needed is forgotten where there is much of it, with what was
// known of it, and its place is taken by what others need.
func TestClassesGoWithTheirRuns(t *testing.T) {
	// Run 1 stays, with one job, which needs to avoid a host once its pilot has lost it.
	const classes, stays = 100, 2
	c, _ := New(Config{})
	step := func(in Input) Effects {
		t.Helper()
		e, err := c.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	has := Resources{MilliCPUs: 1000, Memory: classes / 2}
	seq := uint64(1)
	step(Sync{Pilot: "p", Seq: seq, Full: true, Hello: &PilotInfo{Host: "h", Has: has}})
	step(SetRun{Run{ID: 1}})
	step(Submit{Run: 1, Jobs: []Job{{Name: "stays", Step: "s", Needs: Resources{Memory: 1}}}})
	for run := RunID(2); run < 6; run++ {
		step(SetRun{Run{ID: run}})
		in := Submit{Run: run}
		for i := range classes {
			// Other needs in each run, most of which the pilot does not have; so what is known of an
			// index must not be taken for its next class.
			memory := int64(i) + int64(run%2)*classes
			in.Jobs = append(in.Jobs, Job{Name: fmt.Sprint(i), Step: "s", Needs: Resources{Memory: memory}})
		}
		step(in)
		for i := range classes {
			j := c.jobs.find(NewJobID(run, uint32(i+1)))
			p := c.fleet.pilots["p"]
			if fits, should := p.fits(j.class), j.class.needs.Memory <= has.Memory; fits != should {
				t.Fatalf("run %d: that %d bytes fit is %t", run, j.class.needs.Memory, fits)
			}
		}
		if n := len(c.jobs.byIndex); n > classes+2*stays {
			t.Fatalf("run %d: there are %d classes", run, n)
		}
		step(StopRun{Run: run})
		seq++
		step(Sync{
			Pilot: "p", Seq: seq, Full: true, Hello: &PilotInfo{Host: "h", Has: has}, LastAnswer: 1 << 40,
		})
		step(RetireRun{Run: run})
		c.dropClasses(0)
		groups := 0
		for s := range c.shares.each {
			groups += len(s.groups)
		}
		if len(c.jobs.classes) > stays || groups > stays {
			t.Fatalf("after run %d, %d classes and %d groups are left", run, len(c.jobs.classes), groups)
		}
	}
}

// Jobs that need more different things than there may be are refused as a whole.
func TestClassesAreBounded(t *testing.T) {
	c := withRun(t, Config{})
	in := Submit{Run: 1}
	for i := range maxClasses + 1 {
		in.Jobs = append(in.Jobs, Job{Name: fmt.Sprint(i), Step: "s", Needs: Resources{Memory: int64(i)}})
	}
	if _, err := c.Step(epoch, in); !errors.Is(err, ErrRefused) {
		t.Fatalf("%d classes: %v", len(in.Jobs), err)
	}
	in.Jobs[maxClasses].Needs.Memory = 0
	if _, err := c.Step(epoch, in); err != nil {
		t.Fatal(err)
	}
}
