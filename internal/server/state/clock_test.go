package state

import (
	"testing"
	"testing/synctest"
	"time"
)

// The time of a run does not go back, whoever asks for it, and is that of the
// machine at its start.
func TestTheClockOnlyGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		if began := c.Now(); !began.Equal(time.Now()) {
			t.Error(began, time.Now())
		}
		last := c.Now()
		for range 100 {
			<-time.NewTimer(100 * time.Millisecond).C
			now := c.Now()
			if passed := now.Sub(last); passed < 100*time.Millisecond {
				t.Error("it went on by", passed)
			}
			last = now
		}
	})
}
