package dispatch

import (
	"time"

	"fairway/internal/dispatch/delay"
	"fairway/internal/dispatch/results"
	"fairway/internal/dispatch/rows"
	"fairway/internal/taskqueue"
)

func refuse(format string, args ...any) error { return taskqueue.Refuse(format, args...) }

// Core is the TaskQueue. It is not safe for concurrent use.
//
// Its methods are the places where its parts meet: an input comes in, the parts
// that it concerns are changed, and propagate follows what they found in
// the worklists to its end. The state itself belongs to the parts.
type Core struct {
	*transition
	results.View[*job] // of the journal: it has methods for callers

	journal   journal
	shares    shares
	runs      runs
	files     files
	jobs      jobs
	fleet     fleet
	placement placement
	tools     toolSearch

	// Memory of answers: they are kept by who gets them, so it is never reused.
	inputSlab  rows.Slab[taskqueue.InputFile]
	outputSlab rows.Slab[taskqueue.OutputFile]
	runSlab    rows.Slab[taskqueue.Assignment]
	answerSize int // MaxAssignment, but in tests
}

// New returns an empty Core of the first incarnation, and the record of that.
func New(config taskqueue.Config) (*Core, taskqueue.Effects) {
	c := newCore(config)
	c.journal.beginStore()
	c.journal.persistMeta(0)
	return c, c.effects
}

func newCore(config taskqueue.Config) *Core {
	s := &transition{config: config.WithDefaults()}
	c := &Core{
		transition: s,
		answerSize: taskqueue.MaxAssignment,
	}
	c.journal = journal{transition: s, results: results.NewBook[*job](c.retention)}
	c.View = c.journal.results.View
	c.shares = newShares(s, &c.journal)
	c.runs = runs{transition: s, journal: &c.journal, shares: &c.shares, byID: make(map[taskqueue.RunID]*run)}
	c.files = newFiles(s, &c.journal, &c.runs)
	c.jobs = newJobs(s, &c.shares, &c.runs, &c.files)
	c.fleet = newFleet(s, &c.journal, &c.shares, &c.jobs, &c.files)
	c.placement = placement{
		transition: s, shares: &c.shares, files: &c.files, jobs: &c.jobs, fleet: &c.fleet,
		rule:    delay.RuleOf(config.Placement),
		delayed: delayedJobs{jobs: make(map[uint32]delayed)}, reserved: make(map[*job]*pilot),
		expected: make(map[*job]*pilot),
	}
	return c
}

// Step takes one input at the time now, which must not go back. An error
// wraps [taskqueue.ErrRefused] and says why; then nothing has changed.
func (c *Core) Step(now time.Time, in taskqueue.Input) (taskqueue.Effects, error) {
	c.now = max(c.now, taskqueue.InstantOf(now))
	c.clearEffects()
	c.fleet.numbers.before = c.fleet.numbers.lastAttempt
	if !c.fleet.grace.begun {
		c.jobs.shortenPauses()
		c.jobs.beginWaits()
		c.startGrace()
	}
	if err := c.apply(in); err != nil {
		return taskqueue.Effects{}, err
	}
	c.propagate()
	return c.effects, nil
}

// At calls look, which must only read, with the clock of the Core at now if that is later: between inputs it stands
// still, and what is told of waits and pauses would too. A Core that was never stepped knows no time, and none is
// told it.
func (c *Core) At(now time.Time, look func()) {
	if stepped := c.now; stepped != 0 {
		c.now = max(stepped, taskqueue.InstantOf(now))
		defer func() { c.now = stepped }()
	}
	look()
}

func (c *Core) apply(in taskqueue.Input) error {
	switch in := in.(type) {
	case taskqueue.AddFiles:
		return c.files.addFiles(in)
	case taskqueue.SetShares:
		return c.setShares(in.Shares)
	case taskqueue.HoldJobs:
		c.shares.hold(in.Why)
	case taskqueue.SetKept:
		return c.shares.setKept(in)
	case taskqueue.SetRun:
		return c.setRun(in.Run)
	case taskqueue.CompleteRun:
		return c.completeRun(in.Run)
	case taskqueue.ReadersKnown:
		return c.files.readersKnown(in)
	case taskqueue.StopRun:
		return c.stopRun(in)
	case taskqueue.LookFor:
		c.lookFor(in.Tools)
	case taskqueue.RetireRun:
		return c.retireRun(in)
	case taskqueue.KeepResults:
		return c.keepResults(in)
	case taskqueue.ReleaseRun:
		return c.releaseRun(in)
	case taskqueue.ForgetResults:
		return c.forgetResults(in.Keys)
	case taskqueue.Submit:
		return c.submit(in)
	case taskqueue.Sync:
		return c.sync(&in)
	case taskqueue.HangUp:
		c.hangUp(in)
	case taskqueue.Refused:
		if p := c.fleet.pilots[in.Pilot]; p != nil {
			c.refuse(p)
		}
	case taskqueue.Cancel:
		return c.cancel(in.Jobs)
	case taskqueue.RetryJobs:
		return c.retryJobs(in.Jobs)
	case taskqueue.Prioritize:
		return c.prioritize(in)
	case taskqueue.SetSite:
		return c.fleet.setSite(in.Site)
	case taskqueue.PilotSubmitted:
		return c.fleet.pilotSubmitted(in)
	case taskqueue.PilotEnded:
		c.pilotEnded(in)
	case taskqueue.LoseFiles:
		c.loseFiles(in.Files)
	case taskqueue.Published:
		c.files.publicationConfirmed(in.File)
	case taskqueue.Removed:
		c.files.removed(in.PFN)
	case taskqueue.Stop:
		c.beginStop(in.Drain)
	case taskqueue.Tick:
	default:
		return refuse("dispatch: unknown input %T", in)
	}
	return nil
}

// propagate follows the input to its end: first what becomes of jobs, then who
// runs them, then what is said to whom.
func (c *Core) propagate() {
	c.runTimers()
	c.propagateJobs()
	c.lookForNew()
	c.lookForExpected()
	for first := true; first || c.fleet.nodes.HasChanged(); first = false {
		c.reviewNodes()
		c.matchAll()
	}
	c.fleet.planPilots()
	if c.fleet.grace.over { // before that it is not known what runs
		c.runs.endAll()
	}
	c.answerAll()
	c.effects.WakeAt = c.timers.next()
}

// matchAll brings jobs and pilots together, and takes jobs back that others can begin sooner.
func (c *Core) matchAll() {
	c.propagateJobs()
	c.placement.assignGivenBack()
	c.placement.matchAll()
	// Attempts that their pilots have not heard of are taken back at once: for parked pilots, or
	// from those that are kept for a gang from now on.
	for freed := c.placement.recall(); freed || len(c.work.examine) > 0; freed = false {
		c.propagateJobs()
		c.placement.matchAll()
	}
	c.placement.takeBack()
}

// propagateJobs works until no job can change any more. The lists keep long
// chains of jobs (reused, blocked) off the stack.
func (c *Core) propagateJobs() {
	w := &c.work
	for {
		switch {
		case len(w.block) > 0:
			c.blockJob(pop(&w.block))
		case len(w.unblock) > 0:
			c.unblockJob(pop(&w.unblock))
		case len(w.examine) > 0:
			c.examineAll()
		case len(w.twins) > 0:
			t := pop(&w.twins)
			if t.state == taskqueue.Ready {
				c.placement.setWaiting(t)
				w.examine = append(w.examine, t)
			}
		case len(w.failed) > 0:
			c.failRun(pop(&w.failed))
		case len(w.resume) > 0:
			c.resumeRun(pop(&w.resume))
		case len(w.wanted) > 0:
			c.regenerateAll()
		case len(w.cancel) > 0:
			c.cancelRegeneration(pop(&w.cancel))
		case len(w.changed) > 0:
			c.files.persistOutputs(pop(&w.changed))
		case len(c.files.unread) > 0 && c.fleet.grace.over: // what runs again has pinned what it reads
			c.files.removeUnread()
		default:
			return
		}
	}
}

// examineAll looks at the listed jobs in the order of their listing, so that
// jobs submitted together become ready in that order.
func (c *Core) examineAll() {
	list := c.work.examine
	c.work.examine = nil
	for _, j := range list {
		c.examine(j)
	}
	if c.work.examine == nil {
		c.work.examine = emptied(list)
	}
}

// examine makes a waiting job ready if it can be, or lists it with the
// versions that it still needs.
func (c *Core) examine(j *job) {
	if j.state != taskqueue.Waiting || j.ungranted > 0 || j.absent > 0 {
		return
	}
	if j.fate != nil && j.fate.backingOff {
		return
	}
	if j.readsMissing() {
		c.work.block = append(c.work.block, j)
		return
	}
	if c.files.await(j, func(v *version) bool { return v.state == pending }) {
		return
	}
	if !j.regenerating && (c.reuse(j) || c.jobs.twins.follow(j)) {
		return
	}
	if c.files.await(j, func(v *version) bool { return v.state != present }) {
		c.wantInputs(j)
		return
	}
	if c.placement.makeReachable(j) {
		return
	}
	c.jobs.setState(j, taskqueue.Ready)
	j.readySince = c.now
	c.placement.setClass(j)
	if j.class.key.avoid != "" {
		c.jobs.armAvoidance(j)
	}
	if !j.step.run.halted() {
		c.jobs.index(j)
	}
	c.jobEvent(taskqueue.JobReady, j, "")
}

// blockJob blocks a job that reads a missing version, and so its readers.
func (c *Core) blockJob(j *job) {
	if j.state != taskqueue.Waiting || !j.readsMissing() {
		return
	}
	c.jobs.setState(j, taskqueue.Blocked)
	c.jobEvent(taskqueue.JobBlocked, j, c.jobs.blockedBy(j))
	c.files.withdraw(j)
	c.files.await(j, func(v *version) bool { return v.state == missing })
	c.journal.persistFate(j)
}

// unblockJob is for a blocked job that no longer reads a missing version.
func (c *Core) unblockJob(j *job) {
	if j.state != taskqueue.Blocked {
		return
	}
	if j.readsMissing() {
		c.files.unawait(j)
		c.files.await(j, func(v *version) bool { return v.state == missing })
		return
	}
	c.files.revive(j)
	c.jobs.setState(j, taskqueue.Waiting)
	c.jobEvent(taskqueue.JobUnblocked, j, "")
	c.work.examine = append(c.work.examine, j)
}

func (c *Core) runTimers() {
	for len(c.timers.heap) > 0 && c.timers.heap[0].at <= c.now {
		t := c.timers.heap.Pop()
		switch t.kind {
		case pilotTimer:
			c.pilotTimerFired(t.pilot)
		case jobTimer:
			c.jobs.backoffOver(t.job)
		case avoidTimer:
			c.avoidanceOver(t.job)
		case groupTimer:
			c.placement.siteWaitOver(t.group)
		case graceTimer:
			c.endGrace()
		case monitorTimer:
			c.fleet.monitor.armed, c.fleet.monitor.changed = 0, true
		case delayTimer:
			c.placement.delayed.armed, c.placement.delayed.due = 0, true
		case usageTimer:
			c.shares.saveAll()
		case nodesTimer:
			c.nodesTimerFired()
		}
	}
}

// transition is what all parts of a Core share while one input is taken: the time,
// the effects so far, and what is still to be done. It holds no state of jobs,
// files or pilots. Only the timers last from one transition to the next.
type transition struct {
	config  taskqueue.Config  // constant
	now     instant           // never goes back
	effects taskqueue.Effects // what the caller gets when it ends
	timers  timers
	work    worklists
	silent  bool // while a Core is loaded: what happened before is no event
}

// worklists is how a part tells what follows from a change without knowing who
// acts on it: it appends, and Core.propagate takes. All lists are empty between
// transitions.
type worklists struct {
	examine []*job    // Waiting, and their last obstacle may have gone
	block   []*job    // a version that they read became missing
	unblock []*job    // a missing version that they read may come again
	wanted  []wanting // versions to be made again
	cancel  []*job    // may run again for nothing: their regeneration is to be cancelled
	changed []*job    // committed, and a copy of their outputs came or went
	twins   []*job    // Ready, and another run executes the same job, or has done so
	fresh   []*job    // became Ready
	askers  []*pilot  // want jobs
	answers []*pilot  // are to be answered
	resume  []*run    // go on: their ready jobs are to be offered again
	failed  []*job    // have failed for good, which may halt their runs
}

func pop[T any](list *[]T) T {
	last := len(*list) - 1
	v := (*list)[last]
	*list = (*list)[:last]
	return v
}

func (s *transition) clearEffects() {
	e := &s.effects
	*e = taskqueue.Effects{
		Persist: emptied(e.Persist), Replies: emptied(e.Replies), Start: emptied(e.Start), Stop: emptied(e.Stop),
		Publish: emptied(e.Publish), Remove: emptied(e.Remove), Events: emptied(e.Events),
	}
}

// maxSpare is up to how many elements the memory of a list is used again. That of a
// longer one would keep alive what a transition long ago was about.
const maxSpare = 1 << 10

// emptied returns an empty list, with the memory of this one if that is small.
func emptied[T any](list []T) []T {
	if cap(list) > maxSpare {
		return nil
	}
	return list[:0]
}

func (s *transition) event(e taskqueue.Event) {
	if s.silent {
		return
	}
	e.At = s.now.Time()
	s.effects.Events = append(s.effects.Events, e)
}

func (s *transition) jobEvent(kind taskqueue.EventKind, j *job, reason string) {
	s.event(taskqueue.Event{Kind: kind, Job: j.id, Name: j.name, Step: j.step.Step, Reason: reason})
}

func (s *transition) reply(p *pilot, a taskqueue.Answer) {
	s.effects.Replies = append(s.effects.Replies, taskqueue.Reply{Pilot: p.id, Seq: p.talk.heldSeq, Answer: a})
}

// until is the time from the last transition to an instant, not below zero.
func (s *transition) until(at instant) time.Duration {
	return max(0, time.Duration(at-s.now)).Round(time.Millisecond)
}

// left is how long it is until an instant.
func (s *transition) left(at instant) taskqueue.Left {
	if s.now == 0 {
		return taskqueue.LeftUnknown
	}
	return taskqueue.Left(s.until(at))
}

type instant = taskqueue.Instant

// doubled is a pause that has doubled so many times, and at most so long.
func doubled(pause time.Duration, times int, most time.Duration) time.Duration {
	for n := 0; n < times && pause < most; n++ {
		pause *= 2
	}
	return min(pause, most)
}

type timerKind uint8

const (
	pilotTimer timerKind = iota // its Sync was held long enough, or it is silent too long
	jobTimer                    // its backoff is over
	avoidTimer                  // it has avoided a node for long enough
	groupTimer                  // jobs of it need no longer wait for their site
	graceTimer
	monitorTimer
	delayTimer // a job need no longer be kept for a pilot
	nodesTimer // a node is to be tried, or a pilot has not come in time
	usageTimer // usage of users is to be recorded
)

// timer fires at or after its instant. Whoever it is for looks whether there
// is still something to do.
type timer struct {
	at    instant
	seq   uint64 // of two timers of one instant the older goes first
	kind  timerKind
	pilot *pilot
	job   *job
	group *group
}

// Before is the order in which timers fire.
func (t timer) Before(o timer) bool { return t.at < o.at || t.at == o.at && t.seq < o.seq }

type timers struct {
	heap rows.Ordered[timer]
	seq  uint64
}

func (t *timers) add(x timer) {
	t.seq++
	x.seq = t.seq
	t.heap.Push(x)
}

func (t *timers) next() time.Time {
	if len(t.heap) == 0 {
		return time.Time{}
	}
	return t.heap[0].at.Time()
}
