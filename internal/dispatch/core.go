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
type Core struct {
	*step
	journal   journal
	files     files
	queue     queue
	fleet     fleet
	placement placement

	inputSlab  rows.Slab[InputFile]
	outputSlab rows.Slab[OutputFile]
	runSlab    rows.Slab[Assignment]
}

// New returns an empty Core of the first incarnation, and the record of that.
func New(config Config) (*Core, Effects) {
	c := newCore(config)
	c.journal.beginStore()
	c.journal.persistIncarnation()
	return c, c.effects
}

func newCore(config Config) *Core {
	s := &step{config: config.withDefaults()}
	c := &Core{
		step:    s,
		journal: journal{step: s, results: make(map[identity]storedResult)},
	}
	c.files = newFiles(s, &c.journal)
	c.queue = newQueue(s, &c.files)
	c.fleet = newFleet(s, &c.journal, &c.queue)
	c.placement = placement{
		step: s, files: &c.files, queue: &c.queue, fleet: &c.fleet, rule: ruleOf(config.Placement),
		kept: kept{jobs: make(map[JobID]keptFor)}, reserved: make(map[*job]*pilot),
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
	c.settle()
	return c.effects, nil
}

func (c *Core) apply(in Input) error {
	switch in := in.(type) {
	case AddFiles:
		return c.files.addFiles(in.Files)
	case Submit:
		return c.submit(in.Jobs)
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
		c.files.published(in.File)
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

// settle follows the input to its end: first what becomes of jobs, then who
// runs them, then what is said to whom.
func (c *Core) settle() {
	c.runTimers()
	c.settleJobs()
	c.placement.matchAll()
	if c.placement.recall() {
		c.settleJobs()
		c.placement.matchAll()
	}
	c.fleet.planPilots()
	c.answerAll()
	c.effects.WakeAt = c.timers.next()
}

// settleJobs works until no job can change any more. The lists keep long
// chains of jobs (reused, blocked) off the stack.
func (c *Core) settleJobs() {
	w := &c.work
	for {
		switch {
		case len(w.block) > 0:
			c.blockJob(pop(&w.block))
		case len(w.unblock) > 0:
			c.unblockJob(pop(&w.unblock))
		case len(w.examine) > 0:
			c.examineAll()
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

func (c *Core) runTimers() {
	for len(c.timers.heap) > 0 && c.timers.heap[0].at <= c.now {
		t := heap.Pop(&c.timers.heap).(timer)
		switch t.kind {
		case pilotTimer:
			c.pilotTime(t.pilot)
		case jobTimer:
			c.queue.backoffOver(t.job)
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
