package state

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"fairway/internal/flow"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// PublishedLimit is how many published names a summary lists.
const PublishedLimit = 20

// Tally counts what dispatch doesn't, from events, so that a report costs the
// same however many jobs there are. It belongs to the loop, which makes it with the
// cores and discards it with them. Nothing is decided by it, but by Finished.
type Tally struct {
	// The workflow as flow has it: which steps are final, and whether all are.
	Workflow string // its name
	Finished bool
	order    []string // its steps
	final    map[string]bool

	// The attempts that ended, by all servers of the run: recall takes them from the
	// store, Observe adds those that end now. Sums are over all of them, pace is of the
	// latter.
	Attempts attempts
	Sums     sums
	pace     pace

	// What caches were good for: the inputs that attempts have read on each host, as Sums
	// has them of all ("" is a host that is not known).
	ReadsAt map[string]*Reads
	// WrittenAt are the bytes that attempts have written on each host.
	WrittenAt map[string]int64

	// Timeline tells when attempts ran on which pilots.
	Timeline Timeline

	// What goes on now, not durable: since when attempts run, until they end.
	Started map[taskqueue.JobID]time.Time

	// The jobs that came to an end since the cores were loaded, in that order; one that ran again is
	// there again. It takes 8 bytes for each.
	Ended []taskqueue.JobID

	// The pilots: what all runs know of them, and how many registered since the cores were
	// loaded, or the run was added to them.
	*Nodes
	Pilots  int64
	workers map[taskqueue.PilotID]bool // that ended attempts

	// The files that stand under their plain names, by LFN; names are the first
	// PublishedLimit of them, in order.
	published map[string]bool
	names     []string
}

// Reads counts inputs that attempts have read. Remote hits came from caches of other
// hosts; prefetched ones were read for the first time since they were.
type Reads struct {
	Hits, Misses, Remote, Prefetched             int64 // the last two are of Hits
	Cached, Staged, BytesRemote, BytesPrefetched int64 // the last two are of Cached
}

func (r *Reads) add(u *taskqueue.Usage) {
	r.Hits += int64(u.CacheHits)
	r.Misses += int64(u.CacheMisses)
	r.Remote += int64(u.RemoteHits)
	r.Prefetched += int64(u.PrefetchHits)
	r.Cached += u.BytesCached
	r.Staged += u.BytesStaged
	r.BytesRemote += u.BytesRemote
	r.BytesPrefetched += u.BytesPrefetched
}

type sums struct {
	Reads
	attempts, written           int64
	Waiting, staging, computing time.Duration
	stageIn, hidden             time.Duration // hidden is the part of stageIn before the turns of attempts
}

func (s *sums) Attempts() int64 { return s.attempts }

func newTally(workflow string, steps []string, nodes *Nodes) *Tally {
	return &Tally{
		Workflow: workflow, order: steps, final: map[string]bool{}, Nodes: nodes, ReadsAt: map[string]*Reads{},
		WrittenAt: map[string]int64{},
		pace:      newPace(), Started: map[taskqueue.JobID]time.Time{},
		published: map[string]bool{}, workers: map[taskqueue.PilotID]bool{},
	}
}

// recall takes in the record of an attempt that ended before the server started. Those of
// a job come in their order.
func (t *Tally) recall(r taskqueue.Record) error {
	if err := t.Attempts.take(r); err != nil {
		return err
	}
	pilot, usage, err := usageOf(r.Body)
	if err != nil {
		return fmt.Errorf("record %s %s: %w", AttemptTable, r.Key, err)
	}
	t.add(pilot, &usage)
	job, attempt, err := parseAttemptKey(r)
	if err == nil {
		outcome, _ := field(r.Body, outcomeField)
		t.Timeline.add(job, attempt, pilot, string(outcome) != taskqueue.Succeeded.String(), &usage)
	}
	return err
}

func (t *Tally) add(pilot taskqueue.PilotID, u *taskqueue.Usage) {
	t.Sums.add(u)
	t.workers[pilot] = true
	host := t.Hosts[pilot]
	if t.ReadsAt[host] == nil {
		t.ReadsAt[host] = new(Reads)
	}
	t.ReadsAt[host].add(u)
	t.WrittenAt[host] += u.BytesWritten
}

// Workers is how many pilots ended attempts.
func (t *Tally) Workers() int64 { return int64(len(t.workers)) }

// Observe takes note of an event of a job of the run, or of a pilot.
func (t *Tally) Observe(e *taskqueue.Event) {
	if e.Job != 0 {
		t.Used.observe(e)
	}
	switch e.Kind {
	case taskqueue.JobStarted:
		t.Started[e.Job] = e.At.Add(-e.Ago)
	case taskqueue.JobCommitted, taskqueue.JobFailed, taskqueue.JobBlocked, taskqueue.JobCancelled,
		taskqueue.JobRegenerated: // who came while a done job ran again waits for its end too
		t.Ended = append(t.Ended, e.Job)
	case taskqueue.PilotRegistered:
		t.Pilots++
		t.Timeline.came(e.Pilot, e.At)
	case taskqueue.PilotGone:
		t.Timeline.left(e.Pilot, e.At)
	}
	if e.Result != nil {
		delete(t.Started, e.Job)
		t.add(e.Pilot, &e.Result.Usage)
		t.Timeline.add(e.Job, e.Result.Attempt, e.Pilot, e.Result.Outcome != taskqueue.Succeeded, &e.Result.Usage)
		t.pace.add(e)
	}
}

// Published notes that a file stands under its plain name.
func (t *Tally) Published(lfn string) {
	if t.published[lfn] {
		return // a later version of it
	}
	t.published[lfn] = true
	at, _ := slices.BinarySearch(t.names, lfn)
	t.names = slices.Insert(t.names, at, lfn)
	t.names = t.names[:min(len(t.names), PublishedLimit)]
}

// AllPublished are the names that stand for a result, in no order.
func (t *Tally) AllPublished() []string { return slices.Collect(maps.Keys(t.published)) }

func (s *sums) add(u *taskqueue.Usage) {
	s.attempts++
	s.Reads.add(u)
	s.written += u.BytesWritten
	if !u.Start.IsZero() {
		addTime(&s.staging, u.Start.Sub(u.StageInStart))
		addTime(&s.stageIn, u.Start.Sub(u.StageInStart)+u.StagedAhead)
		addTime(&s.hidden, u.StagedAhead)
		addTime(&s.computing, u.End.Sub(u.Start))
	}
	if !u.StageOutEnd.IsZero() {
		addTime(&s.staging, u.StageOutEnd.Sub(u.End))
	}
}

// addTime adds to a sum, which ends at the longest Duration.
func addTime(sum *time.Duration, d time.Duration) {
	if *sum > math.MaxInt64-max(0, d) {
		*sum = math.MaxInt64
		return
	}
	*sum += d
}

// ObserveFlow takes in which steps are complete.
func (t *Tally) ObserveFlow(e *flow.Effects) {
	for _, step := range e.Final {
		t.final[step] = true
	}
	t.Finished = e.Finished
}

// Steps reports on each step, in the order of the workflow.
func (t *Tally) Steps(c *Cores) []*wire.StepProgress {
	totals := make(map[string]taskqueue.Totals, len(t.order))
	for _, name := range t.order {
		totals[name] = taskqueue.Totals{}
	}
	names := slices.Clone(t.order)
	for _, s := range c.Dispatch.Steps(c.Run) {
		if _, ok := totals[s.Step]; !ok {
			names = append(names, s.Step) // of a trace
		}
		totals[s.Step] = s.Totals
	}
	reports := make([]*wire.StepProgress, len(names))
	for i, name := range names {
		reports[i] = stepProgress(name, totals[name], t.Finished || t.final[name])
	}
	return reports
}

func stepProgress(name string, totals taskqueue.Totals, final bool) *wire.StepProgress {
	count := func(s taskqueue.State) int64 { return int64(totals.ByState[s]) }
	return &wire.StepProgress{
		Step:       name,
		Total:      int64(totals.Jobs),
		TotalFinal: final,
		Waiting:    count(taskqueue.Waiting),
		Ready:      count(taskqueue.Ready),
		Queued:     count(taskqueue.Assigned),
		Running:    count(taskqueue.Running),
		Done:       count(taskqueue.Done),
		Reused:     int64(totals.Reused),
		Failed:     count(taskqueue.Failed),
		Blocked:    count(taskqueue.Blocked),
		Cancelled:  count(taskqueue.Cancelled),
	}
}

// Summary is for the end, and for the line below the progress bars.
func (t *Tally) Summary(c *Cores) *wire.Summary {
	run, _ := c.Dispatch.Run(c.Run)
	s := &t.Sums
	return &wire.Summary{
		Jobs:             int64(run.Totals.Jobs),
		Attempts:         s.attempts,
		CacheHits:        s.Hits,
		CacheMisses:      s.Misses,
		BytesStaged:      s.Staged,
		BytesCached:      s.Cached,
		BytesWritten:     s.written,
		WaitingSeconds:   s.Waiting.Seconds(),
		StagingSeconds:   s.staging.Seconds(),
		ComputingSeconds: s.computing.Seconds(),
		Pilots:           t.Pilots,
		Published:        slices.Clone(t.names),
		PublishedCount:   int64(len(t.published)),
		StageInSeconds:   s.stageIn.Seconds(),
		HiddenSeconds:    s.hidden.Seconds(),
		RemoteHits:       s.Remote,
		PrefetchHits:     s.Prefetched,
		Removed:          int64(run.Removed),
		BytesRemoved:     run.RemovedBytes,
	}
}

// pace tells from the attempts that ended how long the rest of a run may take.
// It belongs to the loop, and begins again with each server.
type pace struct {
	steps map[string]stepPace
	busy  time.Duration // of all steps
	first time.Time     // when the first of the attempts started
}

type stepPace struct {
	count int
	busy  time.Duration // staging and computing
}

func newPace() pace { return pace{steps: map[string]stepPace{}} }

func (p *pace) add(e *taskqueue.Event) {
	u := &e.Result.Usage
	if e.Result.Outcome != taskqueue.Succeeded || u.StageInStart.IsZero() || u.StageOutEnd.Before(u.StageInStart) {
		return
	}
	busy := u.StageOutEnd.Sub(u.StageInStart)
	step := p.steps[e.Step]
	p.steps[e.Step] = stepPace{step.count + 1, step.busy + busy}
	p.busy += busy
	if start := e.At.Add(-busy); p.first.IsZero() || start.Before(p.first) {
		p.first = start
	}
}

// enoughPace is how many attempts must have ended, and for how long they must
// have been coming, before anything is said of the rest.
const (
	enoughPace = 3
	paceTime   = 5 * time.Second
)

// estimate estimates the time until jobs have ended of which there are that many for
// each step: they take as long as those before, and as many run side by side.
// It is 0 where nothing can be said, because no job of one of the steps has ended.
func (p *pace) estimate(now time.Time, rest map[string]int) time.Duration {
	elapsed := now.Sub(p.first)
	count, work := 0, 0.0
	for _, step := range p.steps {
		count += step.count
	}
	if count < enoughPace || elapsed < paceTime || p.busy <= 0 {
		return 0
	}
	for name, jobs := range rest {
		step := p.steps[name]
		if step.count == 0 {
			return 0
		}
		work += float64(jobs) * float64(step.busy) / float64(step.count)
	}
	return time.Duration(work * float64(elapsed) / float64(p.busy))
}

// Left estimates the time to the end of the run, or gives 0. While jobs may
// still be made nothing is said.
func (t *Tally) Left(c *Cores) time.Duration {
	if !t.Finished {
		return 0
	}
	return t.pace.estimate(Now(), restOf(c))
}

// LeftAtLeast is Left for those steps alone of which jobs have ended, whether jobs may still be made
// or not.
func (t *Tally) LeftAtLeast(c *Cores) time.Duration {
	rest := restOf(c)
	maps.DeleteFunc(rest, func(step string, _ int) bool { return t.pace.steps[step].count == 0 })
	return t.pace.estimate(Now(), rest)
}

func restOf(c *Cores) map[string]int {
	rest := map[string]int{}
	for _, s := range c.Dispatch.Steps(c.Run) {
		for _, state := range []taskqueue.State{taskqueue.Waiting, taskqueue.Ready, taskqueue.Assigned, taskqueue.Running} {
			if n := s.ByState[state]; n > 0 {
				rest[s.Step] += n
			}
		}
	}
	return rest
}
