package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// An alarm rings when it was set to ring last, once, and not when it was
// stopped, whatever was asked for before.
func TestAlarmRingsWhenItWasSetLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e engine
		var rang []time.Duration
		a := newAlarm(&e, func() { rang = append(rang, e.now) })
		var want []time.Duration
		due := never
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch at := e.now + time.Duration(rapid.IntRange(0, 20).Draw(t, "in")); {
			case rapid.IntRange(0, 4).Draw(t, "stop") == 0:
				a.stop()
				due = never
			default:
				a.set(at)
				due = at
			}
			until := e.now + time.Duration(rapid.IntRange(1, 10).Draw(t, "pass"))
			e.at(until, func() {})
			for e.now < until && e.step() {
			}
			if due <= until && (due < until || len(rang) > len(want)) {
				want = append(want, due)
				due = never
			}
		}
		for e.step() {
		}
		if due != never {
			want = append(want, due)
		}
		if len(rang) != len(want) {
			t.Fatalf("rang at %v, not at %v", rang, want)
		}
		for i := range want {
			if rang[i] != want[i] {
				t.Fatalf("rang at %v, not at %v", rang, want)
			}
		}
	})
}

// Putting an alarm off asks for no further event.
func TestAlarmPutOffCostsNoEvent(t *testing.T) {
	var e engine
	rang := 0
	a := newAlarm(&e, func() { rang++ })
	for i := range 1000 {
		a.set(time.Duration(10 + i))
	}
	if len(e.heap) != 1 {
		t.Errorf("%d events are asked for", len(e.heap))
	}
	for e.step() {
	}
	if rang != 1 || e.now != 1009 {
		t.Errorf("rang %d times, last at %d", rang, e.now)
	}
}
