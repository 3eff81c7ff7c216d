package orwl

import (
	"fmt"
	"testing"
	"time"

	"fairway/test/seed"
)

// simulate runs the tasks of an order with pairs in virtual time and returns
// the time between two iterations after many.
func simulate(o Order, times map[string]time.Duration, iterations int) time.Duration {
	g := newEventGraph(o, times)
	ends := make([][]time.Duration, iterations)
	for n := range ends {
		ends[n] = make([]time.Duration, len(g.tasks))
		started := make([]time.Duration, len(g.tasks))
		// Without tokens the waits of one iteration have no cycle, so this ends.
		for changed := true; changed; {
			changed = false
			for i := range g.tasks {
				ends[n][i] = started[i] + g.times[i]
			}
			for _, e := range g.edges {
				if k := n - e.tokens; k >= 0 && ends[k][e.from] > started[e.to] {
					started[e.to] = ends[k][e.from]
					changed = true
				}
			}
		}
	}
	last, mid := iterations-1, iterations/2
	var period time.Duration
	for i := range g.tasks {
		period = max(period, (ends[last][i]-ends[mid][i])/time.Duration(last-mid))
	}
	return period
}

func TestPeriodAgainstSimulation(t *testing.T) {
	rng := seed.Source(t)
	checked := 0
	for range rounds(400) {
		o, times := Order{}, map[string]time.Duration{}
		tasks := 1 + rng.IntN(5)
		for i := range tasks {
			times[fmt.Sprint(i)] = time.Duration(rng.IntN(1000)) * time.Millisecond
		}
		for l := range 1 + rng.IntN(4) {
			for _, task := range rng.Perm(tasks)[:1+rng.IntN(tasks)] {
				name := fmt.Sprint("l", l)
				o[name] = append(o[name], Place{Task: fmt.Sprint(task), Mode: Mode(rng.IntN(2))})
			}
		}
		got, limit, err := o.Period(times)
		if err != nil {
			continue
		}
		checked++
		want := simulate(o, times, 241)
		if d := got - want; d < -time.Second/100 || d > time.Second/100 {
			t.Fatalf("%v with %v: predicted %v (%v), simulated %v", o, times, got, limit, want)
		}
	}
	if checked < 50 {
		t.Fatalf("only %d live orders", checked)
	}
}

func TestPeriodNamesTheLimit(t *testing.T) {
	o := Order{
		"x": {{"producer", Write}, {"consumer", Read}},
		"y": {{"consumer", Write}, {"archiver", Read}},
	}
	period, limit, err := o.Period(map[string]time.Duration{"producer": 3, "consumer": 5, "archiver": 1})
	must(t, err)
	if period != 8 || limit.Time != 8 || limit.Iterations != 1 {
		t.Fatalf("got %v, %+v", period, limit)
	}
	if limit.String() == "" {
		t.Fatal("the limit has no description")
	}
}
