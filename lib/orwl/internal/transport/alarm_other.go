//go:build !linux

package transport

import "time"

// alarm wakes one goroutine at a time that others may set.
type alarm struct {
	timer *time.Timer
	over  chan struct{}
}

func newAlarm() (*alarm, error) {
	a := &alarm{timer: time.NewTimer(time.Hour), over: make(chan struct{})}
	a.timer.Stop()
	return a, nil
}

func (a *alarm) set(d time.Duration) { a.timer.Reset(d) }

func (a *alarm) wait() bool {
	select {
	case <-a.timer.C:
		return true
	case <-a.over:
		return false
	}
}

func (a *alarm) close() {
	a.timer.Stop()
	close(a.over)
}
