package estimate

import (
	"math"
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// What is learnt of bytes that come is learnt of attempts that read from one kind of place only.
func TestReadsLearnFromOnePlaceAtATime(t *testing.T) {
	const unknown = -1
	for name, c := range map[string]struct {
		took            time.Duration
		staged, remote  int64
		storage, pilots float64 // seconds a byte
	}{
		"from storage":          {10 * time.Second, 5, 0, 2, unknown},
		"from pilots":           {10 * time.Second, 0, 4, unknown, 2.5},
		"one byte from storage": {time.Second, 1, 0, 1, unknown},
		"one byte from pilots":  {time.Second, 0, 1, unknown, 1},
		"from both":             {10 * time.Second, 5, 5, unknown, unknown},
		"both, one byte each":   {10 * time.Second, 1, 1, unknown, unknown},
		"from nowhere":          {10 * time.Second, 0, 0, unknown, unknown},
		"in no time":            {0, 5, 0, 0, unknown},
		"a clock that was set":  {-time.Second, 5, 0, unknown, unknown},
		"half a second early":   {-time.Second / 2, 5, 0, unknown, unknown},
		"half a second":         {time.Second / 2, 1, 0, 0.5, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Unix(1000, 0)
			var r Reads
			r.Learn(&taskqueue.Usage{StageInStart: began, Start: began.Add(time.Hour)}) // which read nothing
			r.Learn(&taskqueue.Usage{
				StageInStart: began, Start: began.Add(c.took), BytesStaged: c.staged, BytesRemote: c.remote,
			})
			for place, at := range map[string]struct {
				got  Mean
				want float64
			}{"storage": {r.Storage, c.storage}, "pilots": {r.Pilots, c.pilots}} {
				if at.got.IsKnown() != (at.want != unknown) || at.got.IsKnown() && at.got.Value() != at.want {
					t.Errorf("%s: known %v, %v s a byte; want %v", place, at.got.IsKnown(), at.got.Value(), at.want)
				}
			}
		})
	}
}

// Where times are spread, what is left lies between what is left of the mean and the whole mean.
func TestRestWhereTimesAreSpread(t *testing.T) {
	var r times
	r.time.Add(60+140, 2)
	r.square.Add(60*60+140*140, 2) // the variance is 0.16 of the mean squared
	for age, want := range map[float64]float64{0: 100, 50: 0.84*50 + 16, 100: 16, 110: 16, 130: 30} {
		if got := r.rest(age); math.Abs(got-want) > 1e-9 {
			t.Errorf("after %v s are left %v; want %v", age, got, want)
		}
	}
}

// Where a few take very long, the past tells nothing.
func TestRestWhereTimesAreVerySpread(t *testing.T) {
	var r times
	r.time.Add(9*0+100, 10)
	r.square.Add(100*100, 10)
	for age, want := range map[float64]float64{0: 10, 5: 10, 10: 10, 30: 20} {
		if got := r.rest(age); math.Abs(got-want) > 1e-9 {
			t.Errorf("after %v s are left %v; want %v", age, got, want)
		}
	}
}

// The last terms count most: of those before the last 32 little more than a third is left.
func TestMeansFollowTheLastTerms(t *testing.T) {
	var m Mean
	for range 1000 {
		m.Add(0, 1)
	}
	for range averaged {
		m.Add(1, 1)
	}
	if got, want := m.Value(), 1-math.Pow(1-1.0/averaged, averaged); math.Abs(got-want) > 1e-6 {
		t.Errorf("the mean is %v; want %v", got, want)
	}
}

// The names of steps are bounded: with one too many those before it are forgotten. What attempts take on the
// whole is known all the same.
func TestNamesAreBounded(t *testing.T) {
	runs := NewRuns[numbered, int]()
	for i := range maxAlike {
		runs.Ended(numbered(i), time.Minute)
	}
	for i := range maxAlike {
		runs.Forget(numbered(i))
		if runs.Of(numbered(i)) != time.Minute {
			t.Fatalf("the name of step %d is forgotten", i)
		}
	}
	runs.Ended(numbered(0), time.Minute)
	if runs.Of(numbered(maxAlike-1)) == 0 {
		t.Error("a name that is known makes others be forgotten")
	}
	runs.Ended(numbered(maxAlike), time.Minute)
	if got := runs.Of(numbered(1)); got != 0 {
		t.Errorf("what the first of %d names tells is kept: %v", maxAlike+1, got)
	}
	if got := runs.Of(numbered(maxAlike)); got != time.Minute {
		t.Errorf("the last name tells %v", got)
	}
	if got := runs.All.Value(); math.Abs(got-60) > 1e-6 {
		t.Errorf("an attempt takes %v s; want 60", got)
	}
}

type numbered int

func (n numbered) Names() int { return int(n) }

// Nothing is told of a step that nobody knows; of one that is known, what is left of its mean.
func TestRestOfAStep(t *testing.T) {
	runs := NewRuns[numbered, int]()
	if rest, ok := runs.RestOf(1, time.Second); rest != 0 || ok {
		t.Errorf("a step that nobody knows has %v left", rest)
	}
	runs.Ended(1, time.Minute)
	if rest, ok := runs.RestOf(1, 20*time.Second); rest != 40*time.Second || !ok {
		t.Errorf("after 20 of 60 s are left %v, %v", rest, ok)
	}
}

// A time that no instant can tell is the longest that one can.
func TestSecondsAreBounded(t *testing.T) {
	for s, want := range map[float64]time.Duration{
		0: 0, 1.5: 1500 * time.Millisecond, math.Inf(1): longest, 1e300: longest,
	} {
		if got := Seconds(s); got != want {
			t.Errorf("%v s are %v; want %v", s, got, want)
		}
	}
	var none *Mean
	if none.IsKnown() || none.Value() != 0 {
		t.Error("a mean of nothing is known")
	}
}
