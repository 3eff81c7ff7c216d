package taskqueue

import "time"

// Instant is a time in nanoseconds since 1970, as records hold it; 0 is no time.
type Instant int64

// InstantOf returns a time as an Instant: the zero time as 0.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixNano())
}

// Time returns the instant as a time in UTC: 0 as the zero time.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}

// After returns the instant that is so much later.
func (i Instant) After(d time.Duration) Instant { return i + Instant(d) }
