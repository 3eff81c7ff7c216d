package dispatch

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// A gang is a job of several tasks. Its attempts, one for each task, are its members: they are
// given out in one transition, or none is (placement_gangs.go). A pilot that has a member ready,
// with its inputs and ports, tells so; when all are ready the pilots are told of each other, and the
// commands begin. Nothing of a gang is kept when one member fails: the others are ended, and all
// are tried again. The job is committed with the outputs of the first member when all have
// succeeded, or with Once, when the first has.
//
// The attempts of a gang have numbers that follow each other by task, and that of the first names
// it. After a restart the members that pilots tell of find together by that; a gang of which one is
// missing when the time for that is over has lost it.

// gang is a job of which members have been given out. It is in fleet.gangs until the job is
// committed, or one member has ended otherwise.
type gang struct {
	job     *job
	leader  taskqueue.AttemptID
	members []*attempt         // by task; nil: it has ended, or is not known to live yet
	where   []taskqueue.Member // by task; without a host until it is ready
	done    []bool             // those that have succeeded
	ended   int                // how many these are
	result  *taskqueue.Result  // of the first, when it has
	by      taskqueue.PilotID  // which has told it
	begins  bool               // all have been ready: their commands begin, or have begun
}

// gang reports whether jobs of the class have several tasks.
func (cl *class) gang() bool { return cl.key.tasks > 1 }

// tasks is how many attempts of a job of the class are given out together.
func (cl *class) tasks() int { return max(1, cl.key.tasks) }

// newGang is a gang of a job, with what is recorded of it.
func (fl *fleet) newGang(j *job, leader taskqueue.AttemptID) *gang {
	n := j.class.tasks()
	g := &gang{job: j, leader: leader, members: make([]*attempt, n), where: make([]taskqueue.Member, n),
		done: make([]bool, n)}
	for task := range g.where {
		g.where[task].Task = task
	}
	if j.fate != nil && j.fate.Gang != nil && j.fate.Gang.Leader == leader {
		d := j.fate.Gang
		for _, task := range d.Tasks {
			g.succeeded(task)
		}
		g.result, g.by = d.Result, d.By
	} else {
		fl.forgetRecorded(j)
	}
	fl.gangs[j] = g
	return g
}

// forgetRecorded ends what is recorded of a gang of the job of which nobody tells any more: what its
// first member has stored does not count.
func (fl *fleet) forgetRecorded(j *job) {
	if j.fate == nil || j.fate.Gang == nil {
		return
	}
	d := j.fate.Gang
	j.fate.remember(d.Leader)
	j.fate.Gang = nil
	if d.Result != nil {
		fl.files.discard(j, d.Result)
	}
	fl.journal.persistFate(j)
}

// succeeded takes that a task has. All were ready before that, also if nobody has told a restarted
// TaskQueue so.
func (g *gang) succeeded(task int) {
	g.begins = true
	if task >= 0 && task < len(g.done) && !g.done[task] {
		g.done[task] = true
		g.ended++
	}
}

// whole reports whether each member is known to live or to have succeeded, and those that wait for
// the others can be told of them.
func (g *gang) whole() bool {
	waiting := false
	for task, a := range g.members {
		if a == nil && !g.done[task] {
			return false
		}
		waiting = waiting || a != nil && !a.begun
	}
	return !g.begins || !waiting || g.located()
}

// located reports whether it is known where each member is reached.
func (g *gang) located() bool {
	return !slices.ContainsFunc(g.where, func(m taskqueue.Member) bool { return m.Host == "" })
}

// current is the gang of an attempt, if that is still one.
func (fl *fleet) current(a *attempt) *gang {
	if a.gang != nil && fl.gangs[a.job] == a.gang {
		return a.gang
	}
	return nil
}

// forgetGang ends what is known of the gang of a job: what its members tell does not count any
// more. The caller has them ended, and records the fate of the job.
func (fl *fleet) forgetGang(j *job) {
	g := fl.gangs[j]
	if g == nil {
		fl.forgetRecorded(j)
		return
	}
	delete(fl.gangs, j)
	f := j.itsFate()
	f.remember(g.leader)
	f.Gang = nil
	if g.result != nil {
		fl.files.discard(j, g.result)
	}
}

// disband ends all members of a gang at once. Their pilots are told; until then others may wait
// there for what they use. The caller has the job matched again, or ends it.
func (pl *placement) disband(g *gang) {
	pl.fleet.forgetGang(g.job)
	for _, a := range slices.Clone(g.members) {
		if a != nil {
			pl.fleet.dropAttempt(a)
		}
	}
	pl.fleet.journal.persistFate(g.job)
}

// restart disbands a gang that nobody is to blame for, and has its job matched again.
func (pl *placement) restart(g *gang) {
	pl.disband(g)
	pl.requeue(g.job)
}

// memberEnded takes the end of an attempt of a gang, which is nil if that is not known, and
// returns what it means for the job, and whose result that is: that of the first member if all is
// done, or the failure of this one. Otherwise it returns nil.
func (c *Core) memberEnded(by taskqueue.PilotID, j *job, a *attempt, r *taskqueue.Result) (*taskqueue.Result,
	taskqueue.PilotID) {
	var g *gang
	task := r.Task
	if a != nil {
		a.took = r.Usage.Took()
		g, task = c.fleet.current(a), a.task
		c.fleet.removeAttempt(a)
	} else {
		g = c.gangOf(j, taskqueue.AttemptRef{Job: j.id, Attempt: r.Attempt, GangPlace: r.GangPlace})
	}
	switch {
	case g == nil:
		c.discardMember(j, r)
		c.placement.requeue(j)
		return nil, ""
	case g.done[task]:
		return nil, ""
	case r.Outcome != taskqueue.Succeeded || task == 0 && c.files.checkOutputs(j, r) != "":
		c.placement.disband(g)
		failed := *r
		failed.GangPlace = taskqueue.GangPlace{Leader: g.leader, Task: task}
		return &failed, by
	}
	g.succeeded(task)
	if task == 0 {
		kept := *r
		kept.GangPlace = taskqueue.GangPlace{Leader: g.leader}
		kept.Outputs, kept.Notes = slices.Clone(r.Outputs), slices.Clone(r.Notes)
		g.result, g.by = &kept, by
	} else {
		c.files.discard(j, r)
	}
	if g.ended < len(g.done) && !(task == 0 && j.policy.once) {
		c.persistDone(g)
		return nil, ""
	}
	delete(c.fleet.gangs, j)
	if j.fate != nil && j.fate.Gang != nil {
		j.fate.Gang = nil
		c.journal.persistFate(j)
	}
	return g.result, g.by
}

// discardMember removes what an attempt of a gang has written that does not count. It never will: its
// pilot may tell of it again after a restart, and the files are gone then.
func (c *Core) discardMember(j *job, r *taskqueue.Result) {
	if j.committed == r.Attempt {
		return
	}
	c.files.discard(j, r)
	if len(r.Outputs) > 0 && !j.dealtWith(r.Attempt) {
		j.itsFate().remember(r.Attempt)
		c.journal.persistFate(j)
	}
}

// persistDone records which members have succeeded: their pilots forget that.
func (c *Core) persistDone(g *gang) {
	d := &records.DoneMembers{Leader: g.leader, Result: g.result, By: g.by}
	for task, done := range g.done {
		if done {
			d.Tasks = append(d.Tasks, task)
		}
	}
	g.job.itsFate().Gang = d
	c.journal.persistFate(g.job)
}

// gangOf is the gang to which an attempt says that it belongs, which an earlier incarnation has given
// out: the one that is known, or, while pilots tell what they have, another one. Nil: it does not count.
func (c *Core) gangOf(j *job, ref taskqueue.AttemptRef) *gang {
	if !j.live() || ref.Task < 0 || ref.Task >= j.class.tasks() ||
		ref.Attempt != ref.Leader+taskqueue.AttemptID(ref.Task) ||
		c.foreign(ref.Leader) || j.dealtWith(ref.Leader) {
		return nil
	}
	g := c.fleet.gangs[j]
	switch {
	case g != nil && g.leader == ref.Leader:
		return g
	case c.fleet.grace.over || g != nil && g.leader > ref.Leader:
		return nil
	case g != nil:
		c.placement.disband(g)
	}
	return c.fleet.newGang(j, ref.Leader)
}

// adoptMember takes over a member of a gang that an earlier incarnation has given out.
func (c *Core) adoptMember(p *pilot, j *job, ref taskqueue.AttemptRef) {
	g := c.gangOf(j, ref)
	if g == nil || g.done[ref.Task] || g.members[ref.Task] != nil {
		c.fleet.endUnknown(p, ref.Attempt)
		return
	}
	c.placement.unready(j)
	c.files.unawait(j)
	if j.state < taskqueue.Assigned {
		c.jobs.setState(j, taskqueue.Assigned)
	}
	a := &attempt{
		id: ref.Attempt, job: j, pilot: p, needs: j.class, try: j.tries() + 1, priority: j.effective, adopted: true,
		gang: g, task: ref.Task,
	}
	g.members[ref.Task] = a
	c.fleet.addAttempt(a)
	if j.step.run.state >= taskqueue.RunStopping {
		c.fleet.endAttempts(j)
	}
}

// takeMembers takes which members of gangs are ready at a pilot. When all of one are, it begins.
func (c *Core) takeMembers(p *pilot, s *taskqueue.Sync) {
	for i := range s.Members {
		m := &s.Members[i]
		a := c.fleet.attempts[m.Attempt]
		if a == nil || a.pilot != p || m.Host == "" {
			continue
		}
		g := c.fleet.current(a)
		if g == nil {
			continue
		}
		if m.Begun && !a.begun {
			a.begun, a.moved = true, c.now
			c.looksForOverrun(a)
		}
		g.where[a.task].Host, g.where[a.task].Ports = m.Host, slices.Clone(m.Ports)
		g.begins = g.begins || m.Begun || g.located()
		if g.begins {
			for _, x := range g.members {
				if x.toBegin() {
					c.fleet.mustAnswer(x.pilot)
				}
			}
		}
	}
}

// toBegin reports whether the command of a member is to begin, as far as its pilot has told.
func (a *attempt) toBegin() bool {
	return a != nil && a.gang != nil && a.gang.begins && !a.begun && !a.told.ended && a.gang.located()
}

// start is what a member is told of the others.
func (a *attempt) start() taskqueue.GangStart {
	return taskqueue.GangStart{Attempt: a.id, GangPlace: a.place(), Members: slices.Clone(a.gang.where)}
}

// place is where an attempt stands in its gang.
func (a *attempt) place() taskqueue.GangPlace {
	if a.gang == nil {
		return taskqueue.GangPlace{}
	}
	return taskqueue.GangPlace{Leader: a.gang.leader, Task: a.task}
}

// loseGangs is for when the pilots that a restarted TaskQueue knew have told what they have: gangs
// of which a member is missing are tried again.
func (c *Core) loseGangs() {
	for _, j := range c.fleet.gangJobs() {
		if g := c.fleet.gangs[j]; !g.whole() {
			c.placement.disband(g)
			r := &taskqueue.Result{Job: j.id, Attempt: g.leader, Outcome: taskqueue.Lost,
				Message: "not all of its tasks are there after a restart"}
			c.lossCounted("", j, r, "")
		}
	}
	for _, j := range c.fleet.recordedGangs {
		if c.fleet.gangs[j] == nil {
			c.fleet.forgetRecorded(j)
		}
	}
	c.fleet.recordedGangs = nil
}

// gangJobs are the jobs with gangs, in their order.
func (fl *fleet) gangJobs() []*job {
	list := make([]*job, 0, len(fl.gangs))
	for j := range fl.gangs {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *job) int { return int(int64(a.row) - int64(b.row)) })
	return list
}

// checkGang looks for a gang of which only a part is given out, or began.
func (c *Core) checkGang(j *job) error {
	g := c.fleet.gangs[j]
	if !c.fleet.grace.over {
		return nil
	}
	if g == nil {
		for a := j.attempt; a != nil; a = a.next {
			if a.gang != nil && !a.told.ended {
				return fmt.Errorf("a task of it lives, of a gang that is over")
			}
		}
		return nil
	}
	for task, a := range g.members {
		switch {
		case a == nil && !g.done[task]:
			return fmt.Errorf("its task %d is at no pilot, and others are", task)
		case a != nil && (a.gang != g || a.task != task || c.fleet.attempts[a.id] != a):
			return fmt.Errorf("its task %d is another one", task)
		case a != nil && a.begun && !g.begins:
			return fmt.Errorf("its task %d has begun, and not all were ready", task)
		}
	}
	if g.located() && !g.begins {
		return fmt.Errorf("all of its tasks are ready, and do not begin")
	}
	return nil
}
