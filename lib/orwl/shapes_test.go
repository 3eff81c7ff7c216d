package orwl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func numbers(t *testing.T, n int, first func(i int) float64) []*Location {
	t.Helper()
	locations := make([]*Location, n)
	for i := range locations {
		locations[i] = newLocation(t, fmt.Sprint("number ", i), 8)
		locations[i].Initialize(func(b []byte) { BytesAs[float64](b)[0] = first(i) })
	}
	return locations
}

func contents(t *testing.T, locations []*Location) (all []float64) {
	t.Helper()
	for _, l := range locations {
		must(t, ReadOnce(background, l, func(data []float64) error {
			all = append(all, data[0])
			return nil
		}))
	}
	return all
}

func index(i int) float64 { return float64(i + 1) }

// Each shape gives what one task after the other computes, in whatever order its tasks run.
func TestShapesComputeWhatOneTaskAfterTheOtherDoes(t *testing.T) {
	const n, rounds = 5, 40
	around := func(i int) []int { return []int{(i + n - 1) % n, (i + 1) % n} }
	ring, stencil := make([]float64, n), make([]float64, n)
	for i := range n {
		ring[i], stencil[i] = index(i), index(i)
	}
	for range rounds {
		for i := range ring {
			ring[i] = (ring[i] + ring[(i+1)%n]) / 2
		}
		before := slices.Clone(stencil)
		for i := range stencil {
			stencil[i] = before[i]/4 + before[around(i)[0]]/2 + before[around(i)[1]]
		}
	}
	locations := numbers(t, n, index)
	must(t, Ring(background, rounds, locations, func(_ int, own, next []float64) error {
		own[0] = (own[0] + next[0]) / 2
		return nil
	}))
	if got := contents(t, locations); !slices.Equal(got, ring) {
		t.Error("ring:", got, ring)
	}
	locations = numbers(t, n, index)
	must(t, Stencil(background, rounds, locations, around, func(_ int, own []float64, around [][]float64) error {
		own[0] = own[0]/4 + around[0][0]/2 + around[1][0]
		return nil
	}))
	if got := contents(t, locations); !slices.Equal(got, stencil) {
		t.Error("stencil:", got, stencil)
	}
	var came []float64
	must(t, Pipeline(background, rounds, numbers(t, 2, index), func(stage, round int, in, out []float64) error {
		switch stage {
		case 0:
			out[0] = float64(round)
		case 1:
			out[0] = in[0] * in[0]
		default:
			came = append(came, in[0])
		}
		return nil
	}))
	for i, v := range came {
		if v != float64(i*i) || len(came) != rounds {
			t.Fatal("pipeline:", came)
		}
	}
}

// What one task cannot do ends all, and is said once; nobody is left waiting, and the locations are free.
func TestAFailureEndsAShape(t *testing.T) {
	failed := errors.New("no paper")
	locations := numbers(t, 4, index)
	var rounds atomic.Int64
	err := Ring(background, 1<<30, locations, func(task int, _, _ []float64) error {
		if rounds.Add(1) > 50 && task == 2 {
			return failed
		}
		return nil
	})
	if !errors.Is(err, failed) || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "task 2") {
		t.Error(err)
	}
	contents(t, locations)
	ctx, cancel := context.WithCancel(background)
	err = Pipeline(ctx, 1<<30, numbers(t, 2, index), func(_, round int, _, _ []float64) error {
		if round == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestShapesThatAreNone(t *testing.T) {
	one := numbers(t, 1, index)
	never := func(int, []float64, [][]float64) error { t.Error("called"); return nil }
	for name, err := range map[string]error{
		"ring":     Ring(background, 1, one, func(int, []float64, []float64) error { t.Error("called"); return nil }),
		"pipeline": Pipeline(background, 1, one[:0], func(int, int, []float64, []float64) error { t.Error("called"); return nil }),
		"itself":   Stencil(background, 1, one, func(int) []int { return []int{0} }, never),
		"nobody":   Stencil(background, 1, one, func(int) []int { return []int{7} }, never),
	} {
		if err == nil {
			t.Error(name, "is taken")
		}
	}
	must(t, Stencil(background, 0, one, func(int) []int { return nil }, never))
	must(t, WriteOnce(background, one[0], func(data []float64) error { data[0] = 7; return nil }))
}

// The last round of a pair leaves nobody waiting behind a request that will not be used.
func TestLastRoundOfAPairPostsNoFurtherRequest(t *testing.T) {
	l := newLocation(t, "l", 8)
	var p Pair
	must(t, p.WriteRequest(l))
	count := func(data []uint64) error { data[0]++; return nil }
	must(t, Do(background, &p, count))
	must(t, Do(background, p.Last(), count))
	if l.Waiting() != 0 {
		t.Error("a request is left")
	}
	must(t, ReadOnce(background, l, func(data []uint64) error {
		if data[0] != 2 {
			t.Error(data)
		}
		return nil
	}))
}
