package estimate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// How much longer an attempt takes is told by the mean where all take the same, and by nothing
// that has passed where times are spread exponentially.
func TestRestOfATask(t *testing.T) {
	var even, spread times
	random := rand.New(rand.NewPCG(1, 0))
	for range 10_000 {
		even.add(100)
		spread.add(100 * random.ExpFloat64())
	}
	for age, want := range map[float64]float64{0: 100, 60: 40, 130: 30} {
		if got := even.rest(age); math.Abs(got-want) > 1e-6 {
			t.Errorf("of 100 s are left %v after %v; want %v", got, age, want)
		}
	}
	if mean := spread.time.Value(); spread.rest(mean) < mean/2 {
		t.Errorf("of %v s in the mean are left %v after that", mean, spread.rest(mean))
	}
}

// A step is known by its own attempts, and before there are any by those of the same name in other runs.
func TestAStepIsKnownByItsName(t *testing.T) {
	runs := NewRuns[named, string]()
	if runs.Of(named{1, "align"}) != 0 {
		t.Error("something is expected of what nobody knows")
	}
	runs.Ended(named{1, "align"}, time.Minute)
	if got := runs.Of(named{2, "align"}); got != time.Minute {
		t.Errorf("another run is expected to take %v", got)
	}
	runs.Ended(named{2, "align"}, time.Hour)
	runs.Forget(named{1, "align"})
	if got := runs.Of(named{2, "align"}); got != time.Hour || runs.Len() != 1 {
		t.Errorf("its own attempts tell %v", got)
	}
	if _, ok := runs.RestOf(named{1, "align"}, 0); ok {
		t.Error("a step that was forgotten is known")
	}
}

type named struct {
	run  int
	name string
}

func (n named) Names() string { return n.name }
