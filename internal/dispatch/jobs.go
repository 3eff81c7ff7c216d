package dispatch

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"time"

	"fairway/internal/dispatch/records"
	"fairway/internal/dispatch/rows"
	"fairway/internal/taskqueue"
)

// jobs is all jobs by number and by name, and which of them are ready.
//
// Invariants:
//   - The row of a job is its place in the order of submission over all runs, since this
//     Core was made: its rank in the expected order. No row is used again.
//   - A job is in the indexes exactly while it is Ready: then its bit in readyBit
//     is set, job.group is the group of its user, class and effective priority, and the
//     versions that it reads list it.
//   - A job has at least the priority of every job that waits for it, but for its twins.
//   - totals and those of the steps count every job once, under its state.
//
// It changes states and counts them. What becomes of the pilot that a
// job was kept for is told by those who take a job out.
type jobs struct {
	*transition
	shares *shares
	runs   *runs
	files  *files

	// All jobs of all runs, and what many of them share. Jobs leave with their runs.
	table    rows.Table[job] // none stands in row 0
	policies map[policyKey]*policy
	totals   taskqueue.Totals

	// Requirement classes: what a pilot is compared with.
	classes     map[classKey]*class
	mostClasses int      // maxClasses, and fewer in a test
	byIndex     []*class // nil: the index is spare
	spare       []int
	bound       map[cacheID][]*class // those of jobs that must run where they read this cache
	avoids      bool                 // some class avoids a host, or has done so
	// newTools are programs of classes that are new, until pilots are asked to look for them.
	newTools []string

	// The ready jobs, which stand in the levels of their users.
	readyBit rows.Set
	ready    int
	gangs    int   // of these, those of several tasks
	changed  bool  // jobs became ready or ceased to be since pilots were planned
	common   int32 // priority of the first job
	unequal  bool  // jobs differ in priority; until then nothing is inherited

	twins twins
}

func newJobs(s *transition, sh *shares, rs *runs, fs *files) jobs {
	js := jobs{
		transition: s, shares: sh, runs: rs, files: fs, policies: make(map[policyKey]*policy),
		classes: make(map[classKey]*class), bound: make(map[cacheID][]*class), twins: newTwins(),
		mostClasses: maxClasses,
	}
	js.table.Add() // that holds no job
	return js
}

// job is a submitted Job, kept small: millions of them are queued at times. It
// stands in four lines of the processor's cache, and each of its requests in one;
// what a match looks at stands in the first.
//
// A job lives as long as its run. This part changes its state, class and
// priority; Core changes what happened to it.
type job struct {
	// Where it stands. A Waiting job has an obstacle (ungranted or absent is
	// above 0, or its fate is backing off), or it is in worklists.examine; a Ready
	// one has a group; an Assigned or Running one has an attempt.
	group        *group // where it stands among the ready, nil if it is not
	class        *class // what it needs now
	requests     []request
	attempt      *attempt // the live ones, mostly none or one
	effective    int32    // priority, inherited from jobs that wait for it
	ungranted    int32    // requests that stand behind others
	absent       int32    // versions that it waits for although granted
	state        taskqueue.State
	result       resultKind // whose its result is, when it is Done
	regenerating bool       // was Done, and runs again because outputs of it are gone
	freshly      bool       // in worklists.fresh

	// What it is, fixed at its submission, and what happened to it. committed is
	// the attempt whose outputs count, and stays while the job is regenerating.
	id         taskqueue.JobID
	step       *step // and through it, its run
	readySince instant
	fate       *fate // what went wrong so far
	committed  taskqueue.AttemptID
	original   *class // what it needed when it was submitted
	priority   int32  // as submitted; see ownPriority
	row        uint32 // its rank

	// What it promises and how failures are taken, fixed; the key is known when
	// the identities of all inputs are.
	name    string
	key     identity           // under which its result is kept; zero while unknown
	outputs []taskqueue.Output // as in Writes
	policy  *policy

	text jobText // what only assignments, records and views need
}

// jobText is what only assignments, records and views need of a job.
type jobText struct {
	payload   []byte
	digest    string
	submitted instant
	one       [1]taskqueue.Output // what outputs holds if it is the only one
}

// span says that jobs of a run which follow each other by number do so by row, from
// these on up to the next span.
type span struct{ number, row uint32 }

// row returns the row of a job by its number, which is one of the run's.
func (r *run) row(number uint32) uint32 {
	i := len(r.spans) - 1
	if number < r.spans[i].number {
		i = sort.Search(len(r.spans), func(i int) bool { return r.spans[i].number > number }) - 1
	}
	return r.spans[i].row + number - r.spans[i].number
}

// step is a step of the workflow in one run.
type step struct {
	taskqueue.StepTotals
	run *run
	// failedOn are nodes on which its jobs failed since one succeeded, at most maxFailedOn.
	failedOn    []string
	storedBytes int64 // bytes that its jobs which are done have stored to stay; those that took results, none
}

// fate is what a job went through besides its success. Most jobs have none. What stands beside the record
// begins empty after a restart. A retry by a person begins a new fate.
type fate struct {
	records.Fate

	cache         cacheID // while it is regenerating: where its outputs are needed
	regenerations int     // since a reader was done; bounded by Config.MaxRegenerations
	backingOff    bool    // a timer is set for NotBefore
	avoidUntil    instant // a timer is set for it, while the job is ready and Avoid is set
	takenBack     int     // attempts that were asked back while they were staged in, at most maxTakenBack
}

// maxRemembered bounds fate.Attempts: those that failed, that were discarded, and
// whose commit another one has replaced. What is older can only come back from a
// pilot that was silent through that many.
const maxRemembered = 32

func (j *job) itsFate() *fate {
	if j.fate == nil {
		j.fate = &fate{}
	}
	return j.fate
}

func (f *fate) remember(id taskqueue.AttemptID) {
	if len(f.Attempts) == maxRemembered {
		f.Attempts = slices.Delete(f.Attempts, 0, 1)
	}
	f.Attempts = append(f.Attempts, id)
}

// inputs yields the versions that it reads.
func (j *job) inputs(yield func(*version) bool) {
	for n := range j.requests {
		if v := j.requests[n].read; v != nil && !yield(v) {
			return
		}
	}
}

// writes yields the versions that it writes, those of patterns too.
func (j *job) writes(yield func(*version) bool) {
	for n := range j.requests {
		if v := j.requests[n].write; v != nil && !yield(v) {
			return
		}
	}
}

// inputNames yields the names of what it reads.
func (j *job) inputNames(yield func(lfn string) bool) {
	j.inputs(func(v *version) bool { return yield(v.file.lfn) })
}

// share is that of the user to whom the job's run belongs.
func (j *job) share() *share { return j.step.run.share }

// live reports whether an attempt of the job may still be committed.
func (j *job) live() bool {
	return j.state < taskqueue.Done
}

// dealtWith reports whether the end of the attempt was taken in before, other than by
// the last commit.
func (j *job) dealtWith(id taskqueue.AttemptID) bool {
	return j.fate != nil && slices.Contains(j.fate.Attempts, id)
}

func (j *job) tries() int {
	if j.fate == nil {
		return 0
	}
	return j.fate.Tries + j.fate.Losses
}

// find returns the job of an ID that somebody says, or nil.
func (js *jobs) find(id taskqueue.JobID) *job {
	r := js.runs.byID[id.Run()]
	if r == nil || id.Number() == 0 || id.Number() > r.jobs {
		return nil
	}
	return js.table.At(r.row(id.Number()))
}

// all yields the jobs in the order of their IDs.
func (js *jobs) all(yield func(*job) bool) {
	for _, r := range js.runs.inOrder {
		for j := range js.of(r) {
			if !yield(j) {
				return
			}
		}
	}
}

// of yields the jobs of a run in the order of their numbers.
func (js *jobs) of(r *run) iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for i, s := range r.spans {
			end := r.jobs + 1
			if i+1 < len(r.spans) {
				end = r.spans[i+1].number
			}
			for row := s.row; row < s.row+end-s.number; row++ {
				if !yield(js.table.At(row)) {
					return
				}
			}
		}
	}
}

func (js *jobs) known(ids []taskqueue.JobID) error {
	for _, id := range ids {
		if js.find(id) == nil {
			return refuse("dispatch: there is no job %d of run %d", id.Number(), id.Run())
		}
	}
	return nil
}

// JobNamed returns the job of that name in a run.
func (c *Core) JobNamed(run taskqueue.RunID, name string) (taskqueue.JobID, bool) {
	r := c.runs.byID[run]
	if r == nil {
		return 0, false
	}
	number, ok := c.jobs.named(r, r.names.Hash(name), name)
	return taskqueue.NewJobID(run, number), ok
}

// named finds the number of a job by its name, of which the hash is known.
func (js *jobs) named(r *run, hash uint64, name string) (number uint32, ok bool) {
	return r.names.Find(hash, func(number uint32) bool { return js.table.At(r.row(number)).name == name })
}

// counted are the totals that a job counts in: of its step, its run and all.
func (j *job) counted(js *jobs) [3]*taskqueue.Totals {
	return [3]*taskqueue.Totals{&j.step.Totals, &j.step.run.totals, &js.totals}
}

func (js *jobs) setState(j *job, s taskqueue.State) {
	before, reused := j.state, j.fromBefore()
	j.state = s
	for _, t := range j.counted(js) {
		t.ByState[before]--
		t.ByState[s]++
		if reused {
			t.Reused--
		}
		if j.fromBefore() {
			t.Reused++
		}
	}
	if j.mayHaveTwins() {
		js.twins.moved(j, before, s, &js.work)
	}
}

// fromBefore reports whether the job counts as Reused. Its committed attempt changes only
// while it is not Done.
func (j *job) fromBefore() bool {
	return j.state == taskqueue.Done && j.committed == records.ReusedAttempt
}

// backOff keeps the job from being ready for its pause.
func (js *jobs) backOff(j *job) {
	j.fate.NotBefore = js.now.After(js.pauseOf(j))
	js.armBackoff(j)
}

// pauseOf is how long the job is not ready after its last failure: it doubles with each.
func (js *jobs) pauseOf(j *job) time.Duration {
	pause := j.policy.retry.Backoff
	if pause <= 0 {
		pause = js.config.Backoff
	}
	return doubled(pause, j.fate.Tries-1, js.config.MaxBackoff)
}

// shortenPauses is for the first transition of a Core that was loaded: the clock may be
// another one than that by which the ends of the pauses were recorded, far behind it.
func (js *jobs) shortenPauses() {
	for _, t := range slices.Clone(js.timers.heap) {
		switch {
		case t.kind == jobTimer && t.at > js.now.After(js.pauseOf(t.job)):
			js.backOff(t.job)
		case t.kind == avoidTimer: // it was set when no time was known
			js.armAvoidance(t.job)
		}
	}
}

// armAvoidance bounds how long a job that is ready avoids a node that could be given it. While it would be given
// to another one soon, to try it there again would waste an attempt on a node that may be bad; but no ready job
// is passed over for longer than Config.MaxPassOver.
func (js *jobs) armAvoidance(j *job) {
	j.fate.avoidUntil = js.now.After(js.config.MaxPassOver)
	js.timers.add(timer{at: j.fate.avoidUntil, kind: avoidTimer, job: j})
}

func (js *jobs) armBackoff(j *job) {
	j.fate.backingOff = true
	js.timers.add(timer{at: j.fate.NotBefore, kind: jobTimer, job: j})
}

func (js *jobs) backoffOver(j *job) {
	if f := j.fate; f != nil && f.backingOff && f.NotBefore <= js.now {
		f.backingOff = false
		js.work.examine = append(js.work.examine, j)
	}
}

func (js *jobs) blockedBy(j *job) string {
	v := j.missingInput()
	if v == nil || v.writer == nil {
		return ""
	}
	root := js.culprit(v.writer)
	return fmt.Sprintf("%s will not come: job %s %s", v.file.lfn, root.name, root.ending())
}

// culprit follows blocked jobs to the one that failed or was cancelled.
func (js *jobs) culprit(j *job) *job {
	for range js.table.Len() {
		v := j.missingInput()
		if j.state != taskqueue.Blocked || v == nil || v.writer == nil {
			return j
		}
		j = v.writer
	}
	return j
}

func (j *job) ending() string {
	switch j.state {
	case taskqueue.Failed:
		return "failed"
	case taskqueue.Cancelled:
		return "was cancelled"
	}
	if j.fate == nil || j.fate.Reason == "" {
		return "could not make it again"
	}
	return "could not make it again: " + j.fate.Reason
}
