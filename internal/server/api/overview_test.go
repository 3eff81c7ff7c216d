package api

import (
	"slices"
	"testing"
	"time"

	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
)

// A lane ends when its pilot left, and now while it is there.
func TestEndsOfLanes(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	now := at(100)
	for _, c := range []struct {
		lane state.Lane
		here bool
		want time.Time
	}{
		{state.Lane{From: at(1), Until: at(50), Last: at(40)}, false, at(50)},
		{state.Lane{From: at(1), Until: at(50), Last: at(40)}, true, at(50)},
		{state.Lane{From: at(1), Last: at(40)}, true, now},
		{state.Lane{From: at(1), Last: at(40)}, false, at(40)},
	} {
		if got := (&SlotLane{Here: c.here, Lane: c.lane}).End(now); !got.Equal(c.want) {
			t.Errorf("%+v, here %t, ends at %v; want %v", c.lane, c.here, got, c.want)
		}
	}
}

// Each pilot counts in the bins in which it was there, up to now or to when the last left.
func TestPilotsArePresentFromTheirComingToTheirLeaving(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	for name, c := range map[string]struct {
		lanes map[taskqueue.PilotID]*state.Lane
		here  map[taskqueue.PilotID]bool
		want  []float32
	}{
		"none":            {nil, nil, []float32{}},
		"one that is not": {map[taskqueue.PilotID]*state.Lane{"a": {Until: at(20)}}, nil, []float32{}},
		"two, one of them left": {
			map[taskqueue.PilotID]*state.Lane{"a": {From: at(0), Until: at(15)}, "b": {From: at(10)}},
			map[taskqueue.PilotID]bool{"b": true}, []float32{1, 2, 1, 1},
		},
		"before the first bin": {
			map[taskqueue.PilotID]*state.Lane{"a": {From: at(-30), Until: at(5)}}, nil, []float32{1},
		},
		"later ones": {map[taskqueue.PilotID]*state.Lane{"a": {From: at(20), Last: at(29)}}, nil, []float32{0, 0, 1}},
	} {
		tl := &state.Timeline{Begin: begin, Width: 10 * time.Second, Lanes: c.lanes}
		if got := presence(tl, c.here, at(35)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
	if got := presence(&state.Timeline{Width: time.Second}, nil, begin); got != nil {
		t.Errorf("before anything began: %v", got)
	}
	far := &state.Timeline{Begin: begin, Width: time.Second, Lanes: map[taskqueue.PilotID]*state.Lane{
		"a": {From: at(2 * state.TimelineBins), Until: at(3 * state.TimelineBins)},
		"b": {From: at(0), Until: at(3 * state.TimelineBins)},
	}}
	got := presence(far, nil, begin)
	if len(got) != state.TimelineBins || got[0] != 1 || got[state.TimelineBins-1] != 1 {
		t.Errorf("beyond the last bin: %d bins", len(got))
	}
}
