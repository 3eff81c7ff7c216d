package state

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Clock tells the time by which a run goes. It begins with the clock of the machine,
// and goes on from there whatever becomes of that: somebody may set it ahead and back
// again, and no timer waits for the time between. While the machine sleeps the Clock
// goes on, as people expect of it.
type Clock struct {
	began time.Time // with its monotonic part
	awake time.Duration

	mu     sync.Mutex // guards what follows
	slept  time.Duration
	looked time.Time
}

// sleepLook is how often the Clock finds out for how long the machine slept.
const sleepLook = time.Second

// NewClock returns a Clock that shows the time of the machine now.
func NewClock() *Clock {
	c := &Clock{began: time.Now(), awake: slept()}
	c.looked = c.began
	return c
}

// Now is without the monotonic part, which no recording could give again. It never
// goes back.
func (c *Clock) Now() time.Time {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) >= sleepLook {
		c.slept, c.looked = max(c.slept, slept()-c.awake), now
	}
	return c.began.Round(0).Add(now.Sub(c.began) + c.slept)
}

// slept is how long the machine slept since it started; 0 if that is not known.
func slept() time.Duration {
	var whole, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &whole) != nil {
		return 0
	}
	return time.Duration(whole.Nano() - awake.Nano())
}

var clock = sync.OnceValue(NewClock)

// Now is the time as the cores get it.
func Now() time.Time { return clock().Now() }

// Until is how long it is until a time that Now will show.
func Until(t time.Time) time.Duration { return t.Sub(Now()) }
