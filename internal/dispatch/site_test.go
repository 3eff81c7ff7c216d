package dispatch

import "testing"

// A pilot that had registered before a restart did work: that it ends then is
// no sign of a site whose pilots cannot work, and there is nothing to withdraw.
func TestRecalledLaunch(t *testing.T) {
	core, e := New(Config{})
	durable := append([]Record(nil), e.Persist...)
	for _, in := range []Input{
		SetSite{Site{Name: "farm", MaxPilots: 1}},
		PilotSubmitted{Site: "farm", Launch: "l1"},
		Sync{Pilot: "p1", Seq: 1, Full: true, Hello: &PilotInfo{Host: "h", Site: "farm", Launch: "l1"}},
	} {
		e, err := core.Step(epoch, in)
		if err != nil {
			t.Fatal(err)
		}
		durable = append(durable, e.Persist...)
	}
	core, _, err := Load(Config{}, durable)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = core.Step(epoch, Stop{}); err != nil || len(e.Stop) > 0 {
		t.Fatalf("the launch of a pilot that works is withdrawn: %v %v", e.Stop, err)
	}
}
