package fifo

import "testing"

// A write that is not granted has no turn to give on, and a request stands in one place only: Cycle
// refuses both, before it changes anything.
func TestCycleRefusesWhatInsertAndReleaseRefuse(t *testing.T) {
	refuses := func(what string, q *Queue[int], cur, next *Request[int]) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("Cycle of %s does not panic", what)
			}
		}()
		q.Cycle(cur, next)
	}
	var q Queue[int]
	var first, second, third Request[int]
	q.Insert(&first, Write)
	q.Insert(&second, Write)
	refuses("a write that waits", &q, &second, &third)
	var other Queue[int]
	var present, next Request[int]
	other.Insert(&present, Write)
	other.Insert(&next, Write)
	refuses("a write to a request that is queued", &other, &present, &next)
	if !present.Granted() || next.Granted() || other.Len() != 2 {
		t.Error("the queue has changed")
	}
}

func TestModesHaveNames(t *testing.T) {
	if r, w := Read.String(), Write.String(); r != "read" || w != "write" {
		t.Errorf("the modes are %q and %q", r, w)
	}
}

// Each part of a cycle waits for the step of the next one, around however many tasks.
func TestCycleIsToldInItsOrder(t *testing.T) {
	for n := 2; n <= 6; n++ {
		locations := make([][]Entry[int], n)
		for l := range locations {
			locations[l] = []Entry[int]{{Task: l, Mode: Write}, {Task: (l + 1) % n, Mode: Write}}
		}
		cycle := Check(locations)
		if len(cycle) != n {
			t.Fatalf("%d parts of a cycle of %d tasks: %v", len(cycle), n, cycle)
		}
		for i, w := range cycle {
			if w.For != cycle[(i+1)%n].Step {
				t.Errorf("%d tasks: %v does not wait for the next of %v", n, w, cycle)
			}
		}
	}
}
