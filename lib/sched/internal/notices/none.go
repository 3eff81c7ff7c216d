package notices

import "time"

// none is the Notifier of systems that have none.
type none struct {
	nudged chan struct{}
}

// None returns what tells of no changes: everything is polled for.
func None() Notifier { return &none{nudged: make(chan struct{}, 1)} }

func (n *none) Watch(string) bool { return false }
func (n *none) Unwatch(string)    {}
func (n *none) Close()            {}

func (n *none) Nudge() {
	select {
	case n.nudged <- struct{}{}:
	default:
	}
}

func (n *none) Wait(limit time.Duration, _ func(folder, name string)) {
	if limit < 0 {
		<-n.nudged
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-n.nudged:
	case <-timer.C:
	}
}
