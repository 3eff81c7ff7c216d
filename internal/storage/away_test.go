package storage

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// refusing is an element of a server that refuses connections until a time.
type refusing struct {
	Element
	until time.Time
}

func (r *refusing) Stat(context.Context, string) (Info, error) {
	if time.Now().Before(r.until) {
		return Info{}, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return Info{Size: 1}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Who is patient waits for a server that is away, and has it named. A person who waits at a terminal is told soon.
func TestAServerThatIsAwayIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		away, patience time.Duration
		comes          bool
	}{{10 * time.Second, Patience, true}, {4 * time.Minute, Patience, true}, {time.Hour, Patience, false},
		{10 * time.Second, 0, false}} {
		synctest.Test(t, func(t *testing.T) {
			began, told := time.Now(), 0
			e := Retry(&refusing{until: began.Add(c.away)}, DefaultTries, DefaultBackoff, sleep)
			ctx := t.Context()
			if c.patience > 0 {
				ctx = WithPatience(ctx, c.patience, func(pfn string, why error) {
					if told++; ServerOf(pfn) != "https://se:1" || !errors.Is(why, syscall.ECONNREFUSED) {
						t.Errorf("told of %s: %v", pfn, why)
					}
				})
			}
			_, err := e.Stat(ctx, "https://se:1/file")
			if c.comes != (err == nil) {
				t.Errorf("away for %v, patience %v: %v after %v", c.away, c.patience, err, time.Since(began))
			}
			if c.patience > 0 != (told > 0) {
				t.Errorf("told %d times", told)
			}
			if took := time.Since(began); took > max(c.away, c.patience)+time.Minute && c.away < time.Hour ||
				c.patience == 0 && took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
