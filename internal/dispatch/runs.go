package dispatch

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch/pools"
	"fairway/internal/dispatch/rows"
	"fairway/internal/taskqueue"
)

// runs are the runs that have not been retired. They share pilots, caches and the
// results of earlier runs; all else belongs to one of them.
//
// Invariants:
//   - A job and a file belong to one run, which never changes; a request joins a job and
//     a file of one run.
//   - A number is never given twice: last is durable.
//   - ending lists the runs that may come to their end by themselves.
type runs struct {
	*transition
	journal *journal
	shares  *shares

	byID    map[taskqueue.RunID]*run
	inOrder []*run // by ID
	ending  []*run // complete or halted, and not ended
	last    taskqueue.RunID
}

// run is a run with what it owns. It lives until it is retired. What is said of it and
// its state change by methods of runs alone; jobs change its jobs, files its files.
type run struct {
	taskqueue.Run
	share    *share          // of its Account
	pools    pools.Set[*job] // by its Limits
	state    taskqueue.RunState
	complete bool   // no more jobs will be submitted
	reason   string // for a person: why it does not go on
	raised   int32  // what was added to the priority of its jobs since they were submitted

	// Temporary outputs whose stored copies were removed since the Core was made; one that
	// was made again may count again.
	removed      int
	removedBytes int64

	// Its jobs. Their numbers count from 1; spans say in which rows they stand.
	jobs      uint32
	spans     []span
	names     rows.Names // to numbers
	texts     rows.Text  // what jobs and files are called, and payloads
	steps     map[string]*step
	stepOrder []*step // in the order of their first job
	totals    taskqueue.Totals

	files namespace
}

func (rs *runs) add(id taskqueue.RunID, a taskqueue.Account) *run {
	r := &run{
		Run: taskqueue.Run{ID: id, Account: a}, share: rs.shares.Of(a), names: rows.NewNames(), steps: make(map[string]*step),
		files: namespace{
			run: id, Named: rows.NewNamed(func(f *file) *string { return &f.lfn }),
			patterns: make(map[string]*file),
		},
	}
	r.share.Own.runs = append(r.share.Own.runs, r)
	rs.byID[id] = r
	rs.inOrder = append(rs.inOrder, r)
	rs.last = max(rs.last, id)
	return r
}

func (rs *runs) remove(r *run) {
	r.share.Own.runs = slices.DeleteFunc(r.share.Own.runs, func(x *run) bool { return x == r })
	delete(rs.byID, r.ID)
	rs.inOrder = slices.DeleteFunc(rs.inOrder, func(x *run) bool { return x == r })
	rs.ending = slices.DeleteFunc(rs.ending, func(x *run) bool { return x == r })
}

func (rs *runs) get(id taskqueue.RunID) (*run, error) {
	if r := rs.byID[id]; r != nil {
		return r, nil
	}
	return nil, refuse("dispatch: there is no run %d", id)
}

// halted reports whether no job of the run may be started.
func (r *run) halted() bool { return r.state != taskqueue.RunGoing }

// mayEnd lists a run that comes to its end when nothing of it runs any more.
func (rs *runs) mayEnd(r *run) {
	if !slices.Contains(rs.ending, r) {
		rs.ending = append(rs.ending, r)
	}
}

// endAll ends the runs that have come to their end.
func (rs *runs) endAll() {
	rs.ending = slices.DeleteFunc(rs.ending, func(r *run) bool {
		if r.state == taskqueue.RunGoing && !r.complete {
			return true // it goes on
		}
		n := &r.totals.ByState
		if n[taskqueue.Assigned]+n[taskqueue.Running] > 0 || r.state == taskqueue.RunGoing &&
			n[taskqueue.Waiting]+n[taskqueue.Ready] > 0 {
			return false
		}
		rs.setState(r, taskqueue.RunEnded, r.reason)
		rs.event(taskqueue.Event{Kind: taskqueue.RunOver, Run: r.ID, Name: r.Name, Reason: r.reason})
		return true
	})
}

func (rs *runs) setState(r *run, s taskqueue.RunState, reason string) {
	r.state, r.reason = s, reason
	rs.journal.persistRun(r)
}

// setRun begins a run, or has one go on.
func (c *Core) setRun(in taskqueue.Run) error {
	r := c.runs.byID[in.ID]
	if err := taskqueue.CheckLimits(in.Limits); err != nil {
		return err
	}
	switch {
	case r != nil && r.Account != in.Account:
		return refuse("dispatch: run %d belongs to %v, not to %v", in.ID, r.Account, in.Account)
	case r != nil && (r.Scope != in.Scope || r.NoReuse != in.NoReuse):
		return refuse("dispatch: with whom run %d shares results was said when it began, and stays", in.ID)
	case r != nil:
	case in.ID == 0:
		return refuse("dispatch: a run without a number")
	case in.ID <= c.runs.last:
		return refuse("dispatch: run %d is retired; the next one is run %d", in.ID, c.runs.last+1)
	case c.shares.Len() >= taskqueue.MaxAccounts:
		return refuse("dispatch: more than %d users and groups", taskqueue.MaxAccounts)
	default:
		if err := in.Account.Check(); err != nil {
			return err
		}
		r = c.runs.add(in.ID, in.Account)
		r.Scope, r.NoReuse = in.Scope, in.NoReuse
		c.journal.persistMeta(c.runs.last)
	}
	held := r.halted()
	r.Run, r.complete = in, false
	c.limitRun(r, in.Limits)
	c.runs.setState(r, taskqueue.RunGoing, "")
	if held {
		c.work.resume = append(c.work.resume, r)
	}
	return nil
}

// limitRun sets the limits of a run. Jobs of it that were ready are looked at again.
func (c *Core) limitRun(r *run, limits map[string]int64) {
	if len(limits) == 0 && len(r.pools) == 0 {
		return
	}
	r.pools = r.pools.Limited(limits)
	c.shares.freed = true
	for j := range c.jobs.of(r) {
		if !needsCountable(&j.original.needs) {
			continue
		}
		j.asSubmitted(c.jobs.variant(j.original, func(k *classKey) { k.run = r.ID }))
		if j.state == taskqueue.Ready {
			c.placement.setWaiting(j)
			c.work.examine = append(c.work.examine, j)
		}
	}
	c.jobs.drawOnPoolsAgain()
}

// resumeRun has the jobs looked at that were Ready while their run was halted.
func (c *Core) resumeRun(r *run) {
	for j := range c.jobs.of(r) {
		if j.state == taskqueue.Ready && j.group == nil && !r.halted() {
			c.jobs.setState(j, taskqueue.Waiting)
			c.work.examine = append(c.work.examine, j)
		}
	}
}

func (c *Core) completeRun(id taskqueue.RunID) error {
	r, err := c.runs.get(id)
	if err != nil {
		return err
	}
	if !r.complete {
		r.complete = true
		c.journal.persistRun(r)
		for j := range c.jobs.of(r) {
			if slices.ContainsFunc(j.outputs, func(o taskqueue.Output) bool { return o.Temporary }) {
				c.files.unread = append(c.files.unread, c.files.writtenBy(j)...)
			}
		}
	}
	if r.state != taskqueue.RunEnded {
		c.runs.mayEnd(r)
	}
	return nil
}

func (c *Core) stopRun(in taskqueue.StopRun) error {
	r, err := c.runs.get(in.Run)
	if err != nil {
		return err
	}
	to := taskqueue.RunStopping
	if in.Drain {
		to = taskqueue.RunDraining
	}
	if to > r.state {
		c.haltRun(r, to, "stopped")
	}
	return nil
}

// haltRun has nothing more of a run started: its ready jobs are offered to nobody, and
// what waits at pilots is taken back.
func (c *Core) haltRun(r *run, to taskqueue.RunState, reason string) {
	c.runs.setState(r, to, reason)
	c.runs.mayEnd(r)
	for j := range c.jobs.of(r) {
		c.placement.unready(j)
	}
	for _, p := range c.fleet.inOrder() {
		c.placement.takeBackQueued(p, r)
	}
	if to != taskqueue.RunStopping {
		return
	}
	for j := range c.jobs.of(r) {
		if c.fleet.endAttempts(j); j.state != taskqueue.Waiting {
			c.placement.requeue(j)
		}
	}
}

// failRun is for a run of which a job has failed for good.
func (c *Core) failRun(j *job) {
	if r := j.step.run; !r.KeepGoing && r.state == taskqueue.RunGoing {
		c.haltRun(r, taskqueue.RunDraining, fmt.Sprintf("job %s failed", j.name))
	}
}

// StoredBytes is how much of what jobs of a run have made is stored.
func (c *Core) StoredBytes(id taskqueue.RunID) (sum int64) {
	r := c.runs.byID[id]
	if r == nil {
		return 0
	}
	for f := range r.files.All {
		for _, v := range f.versions {
			if v.pfn != "" && v.writer != nil {
				sum += v.size
			}
		}
	}
	return sum
}

// Run returns one run.
func (c *Core) Run(id taskqueue.RunID) (taskqueue.RunView, bool) {
	if r := c.runs.byID[id]; r != nil {
		return r.view(), true
	}
	return taskqueue.RunView{}, false
}

// NextRun is the number that the next new run gets.
func (c *Core) NextRun() taskqueue.RunID { return c.runs.last + 1 }

func (r *run) view() taskqueue.RunView {
	return taskqueue.RunView{Run: r.Run, State: r.state, Complete: r.complete, Reason: r.reason, Totals: r.totals,
		Removed: r.removed, RemovedBytes: r.removedBytes}
}
