package dispatch

import (
	"container/heap"
	"errors"
	"fmt"
	"time"

	"fairway/internal/dispatch/rows"
)

// ErrRefused is wrapped by every error of [Core.Step]: the input was refused
// and changed nothing.
var ErrRefused = errors.New("refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrRefused)...)
}

// Core is the TaskQueue. It is not safe for concurrent use.
//
// Its methods are the places where its parts meet: an input comes in, the parts
// that it concerns are changed, and propagate follows what they found in
// the worklists to its end. The state itself belongs to the parts.
type Core struct {
	*transition
	journal   journal
	runs      runs
	files     files
	jobs      jobs
	fleet     fleet
	placement placement

	// Memory of answers: they are kept by who gets them, so it is never reused.
	inputSlab  rows.Slab[InputFile]
	outputSlab rows.Slab[OutputFile]
	runSlab    rows.Slab[Assignment]
	answerSize int // MaxAssignment, but in tests
}

// New returns an empty Core of the first incarnation, and the record of that.
func New(config Config) (*Core, Effects) {
	c := newCore(config)
	c.journal.beginStore()
	c.journal.persistMeta(0)
	return c, c.effects
}

func newCore(config Config) *Core {
	s := &transition{config: config.withDefaults()}
	c := &Core{
		transition: s,
		journal:    journal{transition: s, results: make(map[identity]storedResult), taken: make(map[identity]bool)},
		answerSize: MaxAssignment,
	}
	c.runs = newRuns(s, &c.journal)
	c.files = newFiles(s, &c.journal, &c.runs)
	c.jobs = newJobs(s, &c.runs, &c.files)
	c.fleet = newFleet(s, &c.journal, &c.jobs)
	c.placement = placement{
		transition: s, files: &c.files, jobs: &c.jobs, fleet: &c.fleet, rule: ruleOf(config.Placement),
		kept: kept{jobs: make(map[uint32]keptFor)}, reserved: make(map[*job]*pilot),
	}
	return c
}

// Step takes one input at the time now, which must not go back. An error
// wraps [ErrRefused] and says why; then nothing has changed.
func (c *Core) Step(now time.Time, in Input) (Effects, error) {
	c.now = max(c.now, toInstant(now))
	c.clearEffects()
	c.startGrace()
	if err := c.apply(in); err != nil {
		return Effects{}, err
	}
	c.propagate()
	return c.effects, nil
}

func (c *Core) apply(in Input) error {
	switch in := in.(type) {
	case AddFiles:
		return c.files.addFiles(in)
	case SetRun:
		return c.setRun(in.Run)
	case CompleteRun:
		return c.completeRun(in.Run)
	case StopRun:
		return c.stopRun(in)
	case RetireRun:
		return c.retireRun(in.Run)
	case Submit:
		return c.submit(in)
	case Sync:
		return c.sync(&in)
	case Cancel:
		return c.cancel(in.Jobs)
	case RetryJobs:
		return c.retryJobs(in.Jobs)
	case SetSite:
		return c.fleet.setSite(in.Site)
	case PilotSubmitted:
		return c.fleet.pilotSubmitted(in)
	case PilotEnded:
		c.pilotEnded(in)
	case LoseFiles:
		c.loseFiles(in.Files)
	case Published:
		c.files.publicationConfirmed(in.File)
	case Removed:
		c.files.removed(in.PFN)
	case Stop:
		c.beginStop(in.Drain)
	case Tick:
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
	c.placement.matchAll()
	if c.placement.recall() {
		c.propagateJobs()
		c.placement.matchAll()
	}
	c.fleet.planPilots()
	if c.fleet.grace.over { // before that it is not known what runs
		c.runs.endAll()
	}
	c.answerAll()
	c.effects.WakeAt = c.timers.next()
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
	if j.state != Waiting || j.ungranted > 0 || j.absent > 0 {
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
	if !j.regenerating && c.reuse(j) {
		return
	}
	if c.files.await(j, func(v *version) bool { return v.state != present }) {
		c.want(j)
		return
	}
	if c.placement.gather(j) {
		return
	}
	c.jobs.setState(j, Ready)
	j.readySince = c.now
	c.placement.setClass(j)
	if !j.step.run.halted() {
		c.jobs.index(j)
	}
	c.jobEvent(JobReady, j, "")
}

// blockJob blocks a job that reads a missing version, and so its readers.
func (c *Core) blockJob(j *job) {
	if j.state != Waiting || !j.readsMissing() {
		return
	}
	c.jobs.setState(j, Blocked)
	c.jobEvent(JobBlocked, j, c.jobs.blockedBy(j))
	c.files.withdraw(j)
	c.files.await(j, func(v *version) bool { return v.state == missing })
	c.journal.persistFate(j)
}

// unblockJob is for a blocked job that no longer reads a missing version.
func (c *Core) unblockJob(j *job) {
	if j.state != Blocked {
		return
	}
	if j.readsMissing() {
		c.files.unawait(j)
		c.files.await(j, func(v *version) bool { return v.state == missing })
		return
	}
	c.files.revive(j)
	c.jobs.setState(j, Waiting)
	c.jobEvent(JobUnblocked, j, "")
	c.work.examine = append(c.work.examine, j)
}

func (c *Core) runTimers() {
	for len(c.timers.heap) > 0 && c.timers.heap[0].at <= c.now {
		t := heap.Pop(&c.timers.heap).(timer)
		switch t.kind {
		case pilotTimer:
			c.pilotTimerFired(t.pilot)
		case jobTimer:
			c.jobs.backoffOver(t.job)
		case groupTimer:
			c.placement.siteWaitOver(t.group)
		case graceTimer:
			c.endGrace()
		case monitorTimer:
			c.fleet.monitor.armed, c.fleet.monitor.changed = 0, true
		case keptTimer:
			c.placement.kept.armed, c.placement.kept.due = 0, true
		}
	}
}
