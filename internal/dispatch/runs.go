package dispatch

import (
	"fmt"
	"slices"

	"fairway/internal/dispatch/rows"
	"fairway/internal/taskqueue"
)

// Run is what a caller says of a run: one submission of a workflow, with jobs and files
// of its own.
type Run struct {
	ID   taskqueue.RunID
	Name string // for people
	// Account is to whom it belongs, for good: whose share its jobs take.
	Account taskqueue.Account
	// Limits bound what all its attempts together may hold of a resource that a name in
	// Resources.Countable stands for, as those of Shares do for all runs.
	Limits map[string]int64
	// Scope says with whom it shares results, for good: runs of one Scope take each other's, and execute a
	// job once that several have. Empty: it takes those that earlier runs of the workflow left.
	Scope string
	// NoReuse has it take no result of another run, for good. Where runs share results, it leaves none
	// to others either.
	NoReuse bool
	// KeepGoing has the run go on after one of its jobs has failed for good. Otherwise
	// nothing more of it is started then.
	KeepGoing bool
}

// RunState is where a run stands.
type RunState uint8

// The states of a run. Only jobs of a run that is Going are given to pilots; Ready ones
// of the others stay Ready.
const (
	RunGoing    RunState = iota
	RunDraining          // what runs may end, nothing more is started
	RunStopping          // what runs is ended
	RunEnded             // nothing of it runs, and nothing will before a SetRun
)

var runStateNames = [...]string{RunGoing: "going", RunDraining: "draining", RunStopping: "stopping", RunEnded: "ended"}

// String returns the state in a word.
func (s RunState) String() string { return nameOf(runStateNames[:], int(s)) }

// standing says for people what the state means for what is ready.
func (s RunState) standing() string {
	switch s {
	case RunGoing:
		return "goes on"
	case RunEnded:
		return "has ended"
	}
	return "is being ended"
}

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
	Run
	share    *share           // of its Account
	pools    map[string]*pool // by its Limits
	state    RunState
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
	totals    Totals

	files namespace
}

func (rs *runs) add(id taskqueue.RunID, a taskqueue.Account) *run {
	r := &run{
		Run: Run{ID: id, Account: a}, share: rs.shares.Of(a), names: rows.NewNames(), steps: make(map[string]*step),
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
func (r *run) halted() bool { return r.state != RunGoing }

// mayEnd lists a run that comes to its end when nothing of it runs any more.
func (rs *runs) mayEnd(r *run) {
	if !slices.Contains(rs.ending, r) {
		rs.ending = append(rs.ending, r)
	}
}

// endAll ends the runs that have come to their end.
func (rs *runs) endAll() {
	rs.ending = slices.DeleteFunc(rs.ending, func(r *run) bool {
		if r.state == RunGoing && !r.complete {
			return true // it goes on
		}
		n := &r.totals.ByState
		if n[Assigned]+n[Running] > 0 || r.state == RunGoing && n[Waiting]+n[Ready] > 0 {
			return false
		}
		rs.setState(r, RunEnded, r.reason)
		rs.event(Event{Kind: RunOver, Run: r.ID, Name: r.Name, Reason: r.reason})
		return true
	})
}

func (rs *runs) setState(r *run, s RunState, reason string) {
	r.state, r.reason = s, reason
	rs.journal.persistRun(r)
}

// setRun begins a run, or has one go on.
func (c *Core) setRun(in Run) error {
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
	c.runs.setState(r, RunGoing, "")
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
	r.pools = setPools(r.pools, limits)
	c.shares.freed = true
	for j := range c.jobs.of(r) {
		if !j.original.needs.counts() {
			continue
		}
		j.asSubmitted(c.jobs.variant(j.original, func(k *classKey) { k.run = r.ID }))
		if j.state == Ready {
			c.placement.setWaiting(j)
			c.work.examine = append(c.work.examine, j)
		}
	}
	c.jobs.drawAgain()
}

// resumeRun has the jobs looked at that were Ready while their run was halted.
func (c *Core) resumeRun(r *run) {
	for j := range c.jobs.of(r) {
		if j.state == Ready && j.group == nil && !r.halted() {
			c.jobs.setState(j, Waiting)
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
			if slices.ContainsFunc(j.outputs, func(o Output) bool { return o.Temporary }) {
				c.files.unread = append(c.files.unread, c.files.writtenBy(j)...)
			}
		}
	}
	if r.state != RunEnded {
		c.runs.mayEnd(r)
	}
	return nil
}

func (c *Core) stopRun(in StopRun) error {
	r, err := c.runs.get(in.Run)
	if err != nil {
		return err
	}
	to := RunStopping
	if in.Drain {
		to = RunDraining
	}
	if to > r.state {
		c.haltRun(r, to, "stopped")
	}
	return nil
}

// haltRun has nothing more of a run started: its ready jobs are offered to nobody, and
// what waits at pilots is taken back.
func (c *Core) haltRun(r *run, to RunState, reason string) {
	c.runs.setState(r, to, reason)
	c.runs.mayEnd(r)
	for j := range c.jobs.of(r) {
		c.placement.unready(j)
	}
	for _, p := range c.fleet.inOrder() {
		c.placement.takeBackQueued(p, r)
	}
	if to != RunStopping {
		return
	}
	for j := range c.jobs.of(r) {
		if c.fleet.endAttempts(j); j.state != Waiting {
			c.placement.requeue(j)
		}
	}
}

// failRun is for a run of which a job has failed for good.
func (c *Core) failRun(j *job) {
	if r := j.step.run; !r.KeepGoing && r.state == RunGoing {
		c.haltRun(r, RunDraining, fmt.Sprintf("job %s failed", j.name))
	}
}

// RunView is what there is to say of a run.
type RunView struct {
	Run
	State    RunState
	Complete bool   // no more jobs will be submitted
	Reason   string // why it does not go on; empty if it came to its end by itself
	Totals   Totals

	// Temporary outputs whose stored copies were removed since the Core was made or loaded.
	Removed      int
	RemovedBytes int64
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
func (c *Core) Run(id taskqueue.RunID) (RunView, bool) {
	if r := c.runs.byID[id]; r != nil {
		return r.view(), true
	}
	return RunView{}, false
}

// NextRun is the number that the next new run gets.
func (c *Core) NextRun() taskqueue.RunID { return c.runs.last + 1 }

func (r *run) view() RunView {
	return RunView{r.Run, r.state, r.complete, r.reason, r.totals, r.removed, r.removedBytes}
}
