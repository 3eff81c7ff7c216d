package dispatch

import (
	"testing"

	"pgregory.net/rapid"

	"fairway/internal/taskqueue"
)

// A machine is divided among as many pilots as have room for the largest job each.
func TestMachinesAreDividedAmongPilots(t *testing.T) {
	const gb = 1 << 30
	machine := taskqueue.Resources{MilliCPUs: 8000, Memory: 16 * gb, Disk: 100 * gb, Countable: map[string]int64{"gpu": 2}}
	for what, c := range map[string]struct {
		needs []taskqueue.Resources
		want  int
	}{
		"nothing is needed":           {nil, 8},
		"processors":                  {[]taskqueue.Resources{{MilliCPUs: 3000}, {MilliCPUs: 500}}, 2},
		"memory":                      {[]taskqueue.Resources{{Memory: 5 * gb}}, 3},
		"disk":                        {[]taskqueue.Resources{{Disk: 60 * gb}}, 1},
		"countable things":            {[]taskqueue.Resources{{Countable: map[string]int64{"gpu": 1}}}, 2},
		"shares, of whole ones":       {[]taskqueue.Resources{{GPUShare: 100}}, 2},
		"more than there is":          {[]taskqueue.Resources{{MilliCPUs: 64000}}, 1},
		"something it does not have":  {[]taskqueue.Resources{{Countable: map[string]int64{"licence": 1}}}, 1},
		"several, of which one least": {[]taskqueue.Resources{{Memory: 3 * gb}, {Disk: 30 * gb}}, 3},
	} {
		if got := taskqueue.PilotsFor(machine, c.needs); got != c.want {
			t.Errorf("%s: %d pilots, want %d", what, got, c.want)
		}
	}
	if few := taskqueue.PilotsFor(taskqueue.Resources{MilliCPUs: 500}, nil); few != 1 {
		t.Errorf("half a processor has %d pilots", few)
	}
}

// All shares together are no more than the machine, and a job that fits into the machine fits into
// the share of one of the pilots that are made for it.
func TestSharesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(most int64, what string) int64 { return rapid.Int64Range(0, most).Draw(t, what) }
		machine := taskqueue.Resources{
			MilliCPUs: 1000 * (1 + amount(63, "processors")), Memory: amount(1<<40, "memory"), Disk: amount(1<<44, "disk"),
			Countable: map[string]int64{"gpu": amount(8, "gpu")},
		}
		need := taskqueue.Resources{
			MilliCPUs: amount(machine.MilliCPUs, "needs processors"), Memory: amount(machine.Memory, "needs memory"),
			Disk:      amount(machine.Disk, "needs disk"),
			Countable: map[string]int64{"gpu": amount(machine.Countable["gpu"], "needs gpu")},
		}
		n := taskqueue.PilotsFor(machine, []taskqueue.Resources{need})
		share, all := machine.Share(n), int64(n)
		if all*share.Memory > machine.Memory || all*share.Disk > machine.Disk || all*share.MilliCPUs > machine.MilliCPUs ||
			all*share.Countable["gpu"] > machine.Countable["gpu"] {
			t.Fatalf("%d times %+v is more than %+v", n, share, machine)
		}
		if need.MilliCPUs > share.MilliCPUs || need.Memory > share.Memory || need.Disk > share.Disk ||
			need.Countable["gpu"] > share.Countable["gpu"] {
			t.Fatalf("%+v does not fit into %+v of %+v", need, share, machine)
		}
	})
}
