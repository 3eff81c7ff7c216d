package orwl

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"fairway/lib/fifo"
	"fairway/lib/seed"
)

// simulatedTask goes through its phases in virtual time.
type simulatedTask struct {
	name     string
	requests []simulatedRequest
	phases   []int
	at       int           // index of the phase
	until    time.Duration // the end of the phase, while it computes; or -1
	ends     []time.Duration
}

type simulatedRequest struct {
	place    Place
	queue    *fifo.Queue[int]
	now, new *fifo.Request[int]
}

// simulate runs the tasks of an order with pairs in virtual time and returns
// the time between two iterations after many.
func simulate(o Order, times map[string]time.Duration, iterations int) time.Duration {
	tasks := simulatedTasks(o)
	now := time.Duration(0)
	for left := len(tasks); left > 0; {
		next := time.Duration(-1)
		for _, t := range tasks {
			if len(t.ends) < iterations && t.until < 0 && t.granted() {
				t.until = now + times[StepName(t.name, t.phases[t.at])]
			}
			if t.until >= 0 && (next < 0 || t.until < next) {
				next = t.until
			}
		}
		now = next
		for _, t := range tasks {
			if t.until == now {
				t.pass(now)
				if t.at == 0 && len(t.ends) == iterations {
					left--
				}
				break // what is granted now may begin now
			}
		}
	}
	last, mid := iterations-1, iterations/2
	var period time.Duration
	for _, t := range tasks {
		period = max(period, (t.ends[last]-t.ends[mid])/time.Duration(last-mid))
	}
	return period
}

func simulatedTasks(o Order) (tasks []*simulatedTask) {
	byName := make(map[string]*simulatedTask)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		queue := new(fifo.Queue[int])
		for _, p := range o[name] {
			t := byName[p.Task]
			if t == nil {
				t = &simulatedTask{name: p.Task, until: -1}
				byName[p.Task] = t
				tasks = append(tasks, t)
			}
			r := simulatedRequest{p, queue, new(fifo.Request[int]), new(fifo.Request[int])}
			t.requests = append(t.requests, r)
			t.phases = append(t.phases, p.First, max(p.First, p.Last))
			queue.Insert(r.now, p.Mode)
		}
	}
	for _, t := range tasks {
		slices.Sort(t.phases)
		t.phases = slices.Compact(t.phases)
	}
	return tasks
}

func (t *simulatedTask) granted() bool {
	return !slices.ContainsFunc(t.requests, func(r simulatedRequest) bool {
		return r.place.First == t.phases[t.at] && !r.now.Granted()
	})
}

// pass ends a phase.
func (t *simulatedTask) pass(now time.Duration) {
	for i := range t.requests {
		r := &t.requests[i]
		if max(r.place.First, r.place.Last) == t.phases[t.at] {
			r.queue.Insert(r.new, r.place.Mode)
			r.queue.Release(r.now)
			r.now, r.new = r.new, r.now
		}
	}
	t.until = -1
	if t.at++; t.at == len(t.phases) {
		t.at = 0
		t.ends = append(t.ends, now)
	}
}

func TestPeriodAgainstSimulation(t *testing.T) {
	rng := seed.Source(t)
	checked := 0
	for i := range rounds(400) {
		o, times := Order{}, map[string]time.Duration{}
		tasks, phases := 1+rng.IntN(5), 1+i%2*2
		for i := range tasks {
			for phase := range phases {
				times[StepName(fmt.Sprint(i), phase)] = time.Duration(rng.IntN(1000)) * time.Millisecond
			}
		}
		for l := range 1 + rng.IntN(4) {
			for _, task := range rng.Perm(tasks)[:1+rng.IntN(tasks)] {
				name := fmt.Sprint("l", l)
				o[name] = append(o[name], Place{fmt.Sprint(task), Mode(rng.IntN(2)), rng.IntN(phases), rng.IntN(phases)})
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
		"x": {{Task: "producer", Mode: Write}, {Task: "consumer"}},
		"y": {{Task: "consumer", Mode: Write}, {Task: "archiver"}},
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
