package sim

import (
	"slices"

	"fairway/internal/taskqueue"
)

// joinGang has a task of a job wait for the others.
func (a *attempt) joinGang() {
	a.waits = true
	a.pilot.run.ready[a.Attempt] = true
}

func (a *attempt) ref() taskqueue.AttemptRef {
	return taskqueue.AttemptRef{Job: a.Job, Attempt: a.Attempt, GangPlace: a.GangPlace}
}

// member is what the TaskQueue is told of a task.
func (a *attempt) member() taskqueue.MemberState {
	return taskqueue.MemberState{Attempt: a.Attempt, Host: a.pilot.slot.host, Ports: []int{1, 2}, Begun: !a.waits}
}

// beginMembers has tasks compute that were told of the others, and makes sure that all of these are,
// or were, ready.
func (p *pilot) beginMembers(starts []taskqueue.GangStart) bool {
	news := false
	for i := range starts {
		s := &starts[i]
		at := slices.IndexFunc(p.running, func(a *attempt) bool { return a.Attempt == s.Attempt && a.waits })
		if at < 0 {
			continue
		}
		a := p.running[at]
		if len(s.Members) != a.Tasks || s.GangPlace != a.GangPlace {
			p.run.fail("task %d of job %s was told of %d tasks of %d", a.Task, a.Name, len(s.Members), a.Tasks)
		}
		for task := range s.Members {
			if !p.run.ready[a.Leader+taskqueue.AttemptID(task)] {
				p.run.fail("task %d of job %s begins, and task %d was never ready", a.Task, a.Name, task)
			}
		}
		a.waits, news = false, true
		if !a.Once || a.Task == 0 {
			a.work.begin()
		}
	}
	return news
}
