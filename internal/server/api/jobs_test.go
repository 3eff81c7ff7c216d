package api

import (
	"testing"
	"time"

	"fairway/internal/taskqueue"
)

// A job is silent when no pilot is heard that has an attempt of it.
func TestJobsOfSilentPilots(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	for _, c := range []struct {
		silent []time.Time // of the pilot of each attempt
		want   time.Time
	}{
		{nil, time.Time{}},
		{[]time.Time{{}}, time.Time{}},
		{[]time.Time{early}, early},
		{[]time.Time{early, {}}, time.Time{}},
		{[]time.Time{early, late}, late},
	} {
		var attempts []taskqueue.AttemptView
		for _, since := range c.silent {
			attempts = append(attempts, taskqueue.AttemptView{Silent: since})
		}
		got := silentSince(attempts)
		if got == nil != c.want.IsZero() || got != nil && !got.AsTime().Equal(c.want) {
			t.Errorf("of pilots silent since %v: %v, want %v", c.silent, got, c.want)
		}
	}
}
