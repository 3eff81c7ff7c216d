package dispatch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// Each node of a cluster has another free disk, and most have other free memory.
func TestTenThousandNodesHaveFewShapes(t *testing.T) {
	const nodes = 10_000
	c, _ := New(taskqueue.Config{})
	step := func(in taskqueue.Input) {
		t.Helper()
		if _, err := c.Step(epoch, in); err != nil {
			t.Fatal(err)
		}
	}
	hello := func(i int) *taskqueue.PilotInfo {
		return &taskqueue.PilotInfo{Host: fmt.Sprint("node", i), Has: taskqueue.Resources{
			MilliCPUs: 8000, Memory: 30<<30 + int64(i)<<16, Disk: 50<<30 + int64(i)<<22,
		}}
	}
	for i := range nodes {
		step(taskqueue.Sync{Pilot: nthPilot(i), Seq: 1, Full: true, Hello: hello(i)})
	}
	if n := len(c.fleet.shapes); n > 16 || len(c.fleet.shapeOf) != n {
		t.Errorf("%d nodes have %d shapes, %d of them by what they are", nodes, n, len(c.fleet.shapeOf))
	}
	for i := range nodes { // they come again with other free disks, and go
		step(taskqueue.Sync{Pilot: nthPilot(i), Seq: 2, Full: true, Hello: hello(nodes * (i + 1))})
	}
	for i := range nodes {
		step(taskqueue.Sync{Pilot: nthPilot(i), Seq: 3, Leaving: true})
	}
	if len(c.fleet.shapes)+len(c.fleet.shapeOf) > 0 {
		t.Errorf("%d shapes are left, and no pilot", len(c.fleet.shapes))
	}
}

// Pilots of one shape have different amounts: no job goes to one that has too little, and
// none is kept from one that has enough.
func TestShapesDoNotDecideWhatAPilotDecides(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed.Of(t), 1))
	c, _ := New(taskqueue.Config{})
	amount := func() int64 { return rng.Int64N(9) << rng.IntN(2) * 100 } // few shapes, of many pilots each
	has := func() taskqueue.Resources {
		r := taskqueue.Resources{MilliCPUs: 1000 * rng.Int64N(2), Memory: 800 + rng.Int64N(200), Disk: amount()}
		if rng.IntN(3) == 0 {
			r.Time = time.Duration(rng.IntN(3)) * time.Second
		}
		return r
	}
	for seq := uint64(1); seq <= 5000; seq++ {
		id := nthPilot(rng.IntN(20))
		s := taskqueue.Sync{Pilot: id, Seq: seq, Full: true, Hello: &taskqueue.PilotInfo{
			Host: fmt.Sprint("host", rng.IntN(10)), Has: has(), Tools: []string{"a", "b"}[:rng.IntN(3)],
		}}
		s.Draining = rng.IntN(8) == 0
		if rng.IntN(4) == 0 && c.fleet.pilots[id] != nil {
			s = taskqueue.Sync{Pilot: id, Seq: seq, Leaving: true}
		}
		if _, err := c.Step(epoch, s); err != nil {
			t.Fatal(err)
		}
		cl := c.jobs.classOf(&run{}, &taskqueue.Job{Needs: has(), Tools: []string{"a", "b"}[:rng.IntN(3)]})
		away, elsewhere, most := fmt.Sprint("host", rng.IntN(10)), false, int64(0)
		for _, p := range c.fleet.pilots {
			want := len(lacks(cl, p.info.Has, p.shape.tools)) == 0
			if p.fits(cl) != want {
				t.Fatalf("%+v fits %+v: %v", p.info.Has, cl.key, !want)
			}
			elsewhere = elsewhere || want && p.acceptsJobs() && p.info.Node() != away
			most = max(most, p.info.Has.Memory)
		}
		if got := c.fleet.fitsElsewhere(cl, away); got != elsewhere {
			t.Fatalf("a pilot off %s could run %+v: %v", away, cl.key, got)
		}
		if got := c.fleet.mostMemory(); got != most {
			t.Fatalf("most memory is %d, want %d", got, most)
		}
	}
}
