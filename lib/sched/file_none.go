package sched

import "time"

// noNotices is the notifier of systems that have none: everything is polled for.
type noNotices struct {
	nudged chan struct{}
}

func newNoNotices() *noNotices { return &noNotices{nudged: make(chan struct{}, 1)} }

func (n *noNotices) watch(string) bool { return false }
func (n *noNotices) unwatch(string)    {}
func (n *noNotices) close()            {}

func (n *noNotices) nudge() {
	select {
	case n.nudged <- struct{}{}:
	default:
	}
}

func (n *noNotices) wait(limit time.Duration, _ func(folder, name string)) {
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
