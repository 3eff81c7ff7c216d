package room

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/lib/seed"
)

// model is how much of each thing there is, and is in use, each counted by its name.
type model struct{ has, used map[string]int64 }

// takes is what a job takes of each thing.
func (m *model) takes(n *Needs) map[string]int64 {
	all := map[string]int64{"cpus": n.MilliCPUs, "memory": n.Memory, "disk": n.Disk}
	if n.MilliCPUs == 0 {
		all["cpus"] = min(Slot, m.has["cpus"])
	}
	for _, x := range n.Countable {
		all[x.Name] = x.N
	}
	return all
}

func (m *model) fits(n *Needs, times int64) bool {
	for name, k := range m.takes(n) {
		if m.used[name]+k > times*m.has[name] {
			return false
		}
	}
	return true
}

func (m *model) add(n *Needs, sign int64) {
	for name, k := range m.takes(n) {
		m.used[name] += sign * k
	}
}

func randomNeeds(rng *rand.Rand) Needs {
	r := taskqueue.Resources{Countable: map[string]int64{}, GPUShare: rng.Int64N(2) * rng.Int64N(quantity.WholeGPU)}
	for _, name := range []string{"licence", "fpga"} {
		if rng.IntN(3) == 0 {
			r.Countable[name] = 1 + rng.Int64N(2)
		}
	}
	return Needs{
		MilliCPUs: rng.Int64N(4) * 500, Memory: rng.Int64N(4), Disk: rng.Int64N(3), Countable: CountableOf(&r),
	}
}

// What a pilot has room for is what counting thing by thing says, whatever it was given and has given back.
func TestRoomAgainstCounting(t *testing.T) {
	first := seed.Of(t)
	rng := rand.New(rand.NewPCG(first, 0))
	for range 1000 {
		has := taskqueue.Resources{
			MilliCPUs: rng.Int64N(5) * 1000, Memory: rng.Int64N(12), Disk: rng.Int64N(8),
			Countable: map[string]int64{"licence": rng.Int64N(4), quantity.GPU: rng.Int64N(3)},
		}
		r := Room{Has: &has}
		m := &model{used: map[string]int64{}, has: map[string]int64{
			"cpus": has.MilliCPUs, "memory": has.Memory, "disk": has.Disk,
			"licence":    has.Countable["licence"] * quantity.WholeGPU,
			quantity.GPU: has.Countable[quantity.GPU] * quantity.WholeGPU,
		}}
		if has.MilliCPUs == 0 {
			m.has["cpus"] = Slot
		}
		var given []Needs
		for range 12 {
			n := randomNeeds(rng)
			for times := int64(1); times <= 2; times++ {
				if r.Fits(&n, times) != m.fits(&n, times) {
					t.Fatalf("FAIRWAY_SEED=%d: %+v of %+v besides %+v, %d times: %v", first, n, has, r.used, times,
						m.fits(&n, times))
				}
			}
			if fits := len(r.Lacks(&n)) == 0; fits != m.fits(&n, 1) {
				t.Fatalf("FAIRWAY_SEED=%d: %+v lacks %v", first, n, r.Lacks(&n))
			}
			one := r.Clone()
			free := 0
			for ; one.Fits(&n, 1); free++ {
				one.Add(&n, 1)
			}
			if r.Free(&n) != free {
				t.Fatalf("FAIRWAY_SEED=%d: %d more of %+v fit into %+v besides %+v, not %d", first, free, n, has, r.used,
					r.Free(&n))
			}
			if part := r.SlotsOf(&n); part <= 0 || part > float64(r.CPUs())/Slot {
				t.Fatalf("FAIRWAY_SEED=%d: %+v takes %v slots of %+v", first, n, part, has)
			}
			if len(given) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(given))
				r.Add(&given[i], -1)
				m.add(&given[i], -1)
				given = append(given[:i], given[i+1:]...)
			} else if m.fits(&n, 1) {
				r.Add(&n, 1)
				m.add(&n, 1)
				given = append(given, n)
			}
			if r.IsFull() != (m.used["cpus"] >= m.has["cpus"]) {
				t.Fatalf("FAIRWAY_SEED=%d: full is %v with %v of %v", first, r.IsFull(), m.used, m.has)
			}
		}
		for i := range given {
			r.Add(&given[i], -1)
		}
		n := randomNeeds(rng)
		if r.Free(&n) != r.Whole(&n) || fmt.Sprint(r.Used().MilliCPUs, r.Used().Memory, r.Used().Disk) != "0 0 0" {
			t.Fatalf("FAIRWAY_SEED=%d: %+v is in use when all was given back", first, r.Used())
		}
	}
}

// The largest part counts, in slots, and a job that takes no more than its part of all fits whenever one ends.
func TestSlots(t *testing.T) {
	r := Room{Has: &taskqueue.Resources{MilliCPUs: 4000, Memory: 8, Countable: map[string]int64{quantity.GPU: 2}}}
	for _, c := range []struct {
		needs Needs
		slots float64
		fits  bool
	}{
		{Needs{}, 1, true}, {Needs{MilliCPUs: 500, Memory: 2}, 1, true}, {Needs{Memory: 4}, 2, false},
		{Needs{MilliCPUs: 3000}, 3, false}, {Needs{Memory: 80}, 4, false},
		{Needs{Countable: []Countable{{quantity.GPU, 500}}}, 1, false},
	} {
		if r.SlotsOf(&c.needs) != c.slots || r.TakesASlot(&c.needs) != c.fits || r.Slots() != 4 {
			t.Errorf("%+v takes %v of %d slots, any: %v", c.needs, r.SlotsOf(&c.needs), r.Slots(), r.TakesASlot(&c.needs))
		}
	}
}
