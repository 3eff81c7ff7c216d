package process

import (
	"slices"
	"testing"
	"time"

	"fairway/internal/wire"
)

// An attempt is looked at when something may change, and not else.
func TestTheWatchdogLooksWhenSomethingIsDue(t *testing.T) {
	began := time.Now()
	late := began.Add(time.Minute)
	for what, c := range map[string]struct {
		r    *Watched
		now  time.Time
		want time.Duration
	}{
		"it has just begun": {&Watched{Since: began}, began, WatchInterval},
		"no limits":         {&Watched{Since: began}, late, never},
		"a limit of time":   {&Watched{Since: began, Limit: time.Hour}, late, 59 * time.Minute},
		"just before it":    {&Watched{Since: began, Limit: time.Minute + 1}, late, WatchInterval},
	} {
		w := &Watchdog{
			computing: func(bool) {}, some: make(chan struct{}, 1), scratch: &Scratch{}, running: map[*Watched]bool{c.r: true},
		}
		if got := w.check(c.now); got != c.want {
			t.Errorf("%s: it looks again in %v, want %v", what, got, c.want)
		}
		if w.resting != (c.want > WatchInterval) {
			t.Errorf("%s: it rests: %t", what, w.resting)
		}
	}
}

// Who is to look at a command is called once it has run for a while, then as often as it says.
func TestTheWatchdogHasOthersLook(t *testing.T) {
	began := time.Now()
	var looked []time.Duration
	r := &Watched{Since: began}
	r.Look = func(now time.Time) time.Duration {
		if looked = append(looked, now.Sub(began)); len(looked) == 3 {
			return 0
		}
		return 3 * WatchInterval
	}
	w := &Watchdog{
		computing: func(bool) {}, some: make(chan struct{}, 1), scratch: &Scratch{}, running: map[*Watched]bool{r: true},
	}
	next := time.Duration(0)
	for spent := time.Duration(0); spent < time.Minute; spent += WatchInterval {
		if next = w.check(began.Add(spent)); next == never {
			break
		}
	}
	want := []time.Duration{WatchInterval, 4 * WatchInterval, 7 * WatchInterval}
	if !slices.Equal(looked, want) || next != never {
		t.Errorf("it looked after %v, want %v, and looks again in %v", looked, want, next)
	}
}

// What comes or goes while the loop rests wakes it, once.
func TestAttemptsWakeTheWatchdog(t *testing.T) {
	ended := make(chan string, 1)
	w := &Watchdog{
		computing: func(bool) {}, some: make(chan struct{}, 1), scratch: &Scratch{}, running: map[*Watched]bool{},
	}
	if w.check(time.Now()) != never {
		t.Fatal("it looks again at nothing")
	}
	r := &Watched{
		Since: time.Now(), Limit: time.Second, Exceeds: func(_ wire.Outcome, why string) { ended <- why },
	}
	w.Add(r)
	w.Add(&Watched{Since: time.Now()})
	if len(w.some) != 1 || w.goesOn() {
		t.Error("it is not woken")
	}
	w.check(r.Since.Add(2 * time.Second))
	if len(ended) != 1 {
		t.Error("the attempt goes on beyond its limit")
	}
}
