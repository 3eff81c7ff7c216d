package dispatch

import (
	"fmt"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// A pilot that had registered before a restart did work: that it ends then is
// no sign of a site whose pilots cannot work, and there is nothing to withdraw.
func TestRecalledLaunch(t *testing.T) {
	core, e := New(taskqueue.Config{})
	durable := append([]taskqueue.Record(nil), e.Persist...)
	for _, in := range []taskqueue.Input{
		taskqueue.SetSite{Site: taskqueue.Site{Name: "farm", MaxPilots: 1}},
		taskqueue.PilotSubmitted{Site: "farm", Launch: "l1"},
		taskqueue.Sync{Pilot: "p1", Seq: 1, Full: true, Hello: &taskqueue.PilotInfo{Host: "h", Site: "farm", Launch: "l1"}},
	} {
		e, err := core.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		durable = append(durable, e.Persist...)
	}
	core, _, err := Load(taskqueue.Config{}, durable)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = core.Step(epoch, taskqueue.Stop{}); err != nil || len(e.Stop) > 0 {
		t.Fatalf("the launch of a pilot that works is withdrawn: %v %v", e.Stop, err)
	}
}

// A batch system may start a launch twice. When the launch has ended, or is not known to
// it any more, both pilots are gone: the second would keep its jobs until its lease is
// over. If only one of them goes, the launch goes on.
func TestLaunchWithTwoPilots(t *testing.T) {
	core, _ := New(taskqueue.Config{})
	step := func(in taskqueue.Input) taskqueue.Effects {
		t.Helper()
		e, err := core.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	pilots := func() (ids []taskqueue.PilotID) {
		for _, p := range core.Pilots() {
			ids = append(ids, p.Pilot)
		}
		return ids
	}
	come := func(id taskqueue.PilotID) {
		t.Helper()
		step(taskqueue.Sync{
			Pilot: id, Seq: 1, Full: true, Hello: &taskqueue.PilotInfo{Host: string("host of " + id), Site: "farm",
				Launch: "l1"},
		})
	}
	step(taskqueue.SetSite{Site: taskqueue.Site{Name: "farm", MaxPilots: 1}})
	step(taskqueue.PilotSubmitted{Site: "farm", Launch: "l1"})
	come("p1")
	come("p2")
	come("p3")
	step(taskqueue.Sync{Pilot: "p3", Seq: 2, Leaving: true})
	if got := fmt.Sprint(pilots(), len(core.Launches())); got != "[p1 p2] 1" {
		t.Errorf("when one of three pilots has left there are pilots and launches %s", got)
	}
	step(taskqueue.PilotEnded{Launch: "l1"})
	if got := fmt.Sprint(pilots(), len(core.Launches())); got != "[] 0" {
		t.Errorf("when the launch has ended there are pilots and launches %s", got)
	}
}

// With the weights that servers have, three sites start pilots for the jobs that there are, and not
// each of them for all; a site that asks a price gets what the others cannot run soon.
func TestPilotsOfSeveralSitesAreStartedOnce(t *testing.T) {
	for _, c := range []struct {
		weights taskqueue.SiteWeights
		most    int
		want    int
	}{{taskqueue.SiteWeights{Data: 1, Queue: 1, Money: 1}, 20, 12}, {taskqueue.SiteWeights{}, 20, 36}} {
		core, _ := New(taskqueue.Config{Sites: c.weights})
		started := map[string]int{}
		step := func(in taskqueue.Input) {
			t.Helper()
			e, err := core.Step(epoch, in)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range e.Start {
				started[s.Site] += s.Count
			}
		}
		step(taskqueue.SetRun{Run: taskqueue.Run{ID: 1}})
		step(taskqueue.SetSite{Site: taskqueue.Site{Name: "dear", MaxPilots: c.most, Price: 7200}})
		step(taskqueue.SetSite{Site: taskqueue.Site{Name: "free", MaxPilots: c.most}})
		step(taskqueue.SetSite{Site: taskqueue.Site{Name: "slow", MaxPilots: c.most, QueueWait: time.Hour}})
		sub := taskqueue.Submit{Run: 1}
		for i := range 12 {
			sub.Jobs = append(sub.Jobs, taskqueue.Job{Name: fmt.Sprint(i), Step: "s"})
		}
		step(sub)
		if sum := started["dear"] + started["free"] + started["slow"]; sum != c.want ||
			c.want == 12 && started["free"] != 12 {
			t.Errorf("with weights %+v pilots were started: %v", c.weights, started)
		}
	}
}
