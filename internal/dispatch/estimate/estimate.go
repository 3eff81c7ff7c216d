// Package estimate tells from what has been how long things take: how long attempts of a step run, and how long bytes
// take to come. It knows a step only as a key. Nothing of it is durable.
package estimate

import (
	"time"

	"fairway/internal/taskqueue"
)

// Mean is one in which what came n terms later counts (1-1/averaged)^n times as much. The zero Mean has no terms.
type Mean struct{ sum, weight float64 }

// averaged is about how many of the last terms a Mean is of.
const averaged = 32

// Add takes a term, or the sum of several of this weight in all.
func (m *Mean) Add(sum, weight float64) {
	m.sum += sum - m.sum/averaged
	m.weight += weight - m.weight/averaged
}

// IsKnown reports whether there is something to know it from.
func (m *Mean) IsKnown() bool { return m != nil && m.weight != 0 }

// Value is 0 while it is not known.
func (m *Mean) Value() float64 {
	if !m.IsKnown() {
		return 0
	}
	return m.sum / m.weight
}

// longest is the longest time that is expected of anything: as an instant it can be told from now on.
const longest = 1 << 62

// Seconds is so long, and no longer than what can be told as an instant: pilots tell what is expected.
func Seconds(s float64) time.Duration { return time.Duration(min(s*float64(time.Second), longest)) }

// Reads tell how long bytes of input take to come, by where from: seconds for each.
type Reads struct {
	Storage Mean
	Pilots  Mean // of other hosts, from their caches
}

// Learn takes what an attempt took that read its input from one kind of place.
func (r *Reads) Learn(u *taskqueue.Usage) {
	in := u.Start.Sub(u.StageInStart).Seconds()
	switch {
	case in < 0:
	case u.BytesStaged > 0 && u.BytesRemote == 0:
		r.Storage.Add(in, float64(u.BytesStaged))
	case u.BytesRemote > 0 && u.BytesStaged == 0:
		r.Pilots.Add(in, float64(u.BytesRemote))
	}
}

// Step is one of a run, whose name those of other runs bear that do the same.
type Step[N comparable] interface {
	comparable
	Names() N
}

// Runs is what the attempts that succeeded tell of those to come.
type Runs[S Step[N], N comparable] struct {
	steps map[S]*times
	alike map[N]*Mean // at most maxAlike
	All   Mean        // seconds of an attempt, whatever its step
}

// maxAlike bounds the names of steps of which it is known how long their attempts took.
const maxAlike = 10_000

// NewRuns returns a Runs that knows nothing.
func NewRuns[S Step[N], N comparable]() Runs[S, N] {
	return Runs[S, N]{steps: make(map[S]*times), alike: make(map[N]*Mean)}
}

// Ended takes how long an attempt of a step took that succeeded.
func (e *Runs[S, N]) Ended(s S, took time.Duration) {
	if e.steps[s] == nil {
		e.steps[s] = &times{}
	}
	name := s.Names()
	if e.alike[name] == nil {
		if len(e.alike) >= maxAlike {
			clear(e.alike)
		}
		e.alike[name] = &Mean{}
	}
	e.steps[s].add(took.Seconds())
	e.alike[name].Add(took.Seconds(), 1)
	e.All.Add(took.Seconds(), 1)
}

// Of is how long an attempt of the step is expected to occupy its pilot, as others of it did, or those of this
// step in other runs of the workflow; 0 if nothing tells.
func (e *Runs[S, N]) Of(s S) time.Duration {
	if r := e.steps[s]; r != nil {
		return Seconds(r.time.Value())
	}
	return Seconds(e.alike[s.Names()].Value())
}

// RestOf is how much longer an attempt of the step is expected to occupy its pilot, after so long; false if
// nothing tells.
func (e *Runs[S, N]) RestOf(s S, age time.Duration) (time.Duration, bool) {
	r := e.steps[s]
	if r == nil {
		return 0, false
	}
	return Seconds(r.rest(age.Seconds())), true
}

// Forget is for a step whose run is retired. What its name tells stays.
func (e *Runs[S, N]) Forget(s S) { delete(e.steps, s) }

// Len is of how many steps it is known how long they take.
func (e *Runs[S, N]) Len() int { return len(e.steps) }

// times are the seconds that attempts of a step took.
type times struct{ time, square Mean }

func (r *times) add(took float64) {
	r.time.Add(took, 1)
	r.square.Add(took*took, 1)
}

// rest is how many seconds more one is expected to take that has taken so many: what is left of
// the mean where all take the same, the whole mean again where times are so spread (exponentially)
// that the past tells nothing, and in between by how far they are spread. One that has taken
// longer than the mean is expected to need at least as long again as it is late.
func (r *times) rest(age float64) float64 {
	mean := r.time.Value()
	spread := min(1, max(0, r.square.Value()/(mean*mean)-1)) // the variance, as a part of the mean squared
	return max((1-spread)*max(0, mean-age)+spread*mean, age-mean)
}
