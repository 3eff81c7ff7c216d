package dispatch

import (
	"math"
	"math/rand/v2"
	"testing"
)

// How much longer an attempt takes is told by the mean where all take the same, and by nothing
// that has passed where times are spread exponentially.
func TestRestOfATask(t *testing.T) {
	var even, spread runTimes
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
	if mean := spread.time.mean(); spread.rest(mean) < mean/2 {
		t.Errorf("of %v s in the mean are left %v after that", mean, spread.rest(mean))
	}
}
