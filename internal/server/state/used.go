package state

import "fairway/internal/taskqueue"

// Used is what all runs of a server did since it began, also those that are retired. No count falls.
// It belongs to the loop.
type Used struct {
	Reads
	Outcomes           map[taskqueue.Outcome]int64   // of attempts
	Events             map[taskqueue.EventKind]int64 // of jobs
	Written            int64                         // bytes
	Staging, Computing float64                       // seconds
}

func (u *Used) observe(e *taskqueue.Event) {
	if u.Events == nil {
		u.Events, u.Outcomes = map[taskqueue.EventKind]int64{}, map[taskqueue.Outcome]int64{}
	}
	u.Events[e.Kind]++
	if e.Result == nil {
		return
	}
	u.Outcomes[e.Result.Outcome]++
	var s sums
	s.add(&e.Result.Usage)
	u.Reads.add(&e.Result.Usage)
	u.Written += s.written
	u.Staging += s.staging.Seconds()
	u.Computing += s.computing.Seconds()
}
