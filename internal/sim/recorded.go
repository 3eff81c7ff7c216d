package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// Recorded is what is known of a run that took place, for [Replay]: its jobs with their times, and
// how its pilots were.
type Recorded struct {
	Files []RecordedFile // that existed before
	Jobs  []RecordedJob  // in the order of their submission
	Sites map[string]RecordedSite
}

// RecordedFile is a file with its size in bytes.
type RecordedFile struct {
	LFN       string
	Size      int64
	CacheOnly bool // of an output: it is not stored
}

// RecordedJob is a job. What it reads exists before, or a job before it in [Recorded] writes it.
type RecordedJob struct {
	Name, Step string
	Reads      []string
	Access     []taskqueue.Access // one for each of Reads
	Writes     []RecordedFile
	Submitted  time.Duration // since the first one
	MilliCPUs  int64         // 0: one processor, or what its pilot has if that is less
	Priority   int
	Tries      []RecordedTry // at least one; a further one is as the last
	Backoff    time.Duration // before the second try
}

// RecordedTry is an attempt, without what it takes to stage its inputs in.
type RecordedTry struct {
	Setup    time.Duration // before its inputs are staged in
	Compute  time.Duration // with nothing beside it
	StageOut time.Duration
	Failed   bool // its command
}

// RecordedSite tells of the pilots of a site of the experiment.
type RecordedSite struct {
	MilliCPUs int64 // of a pilot
	// Waits are from the submission of a pilot until it asks for jobs, in the order of the submissions,
	// which take them in turn; none: batch.delay of the experiment.
	Waits []time.Duration
	// Slowing is how much longer, as a part of its time alone, a job computes for each other one that
	// computes on its host.
	Slowing float64
}

// Replay executes recorded jobs under an experiment, whose own workflow is none. The same seed
// gives the same run.
func Replay(exp experiment.Experiment, recorded *Recorded) (*Run, error) {
	exp.Defaults()
	work, err := recorded.workflow(&exp)
	if err != nil {
		return nil, err
	}
	r := newRun(&exp, work, 0)
	r.recorded = recorded.Sites
	if err := r.execute(); err != nil {
		return nil, err
	}
	return &Run{Seed: r.seed, Metrics: r.metrics(), Submitted: r.submitted, Faced: r.faced, Attempts: r.tries}, nil
}

// workflow makes jobs of what was recorded. One that reads what no one is known to make is refused:
// the TaskQueue would refuse it.
func (rec *Recorded) workflow(exp *experiment.Experiment) (*jobGraph, error) {
	w := newWorkflow()
	known := map[string]time.Duration{}
	for _, f := range rec.Files {
		w.exists(f.LFN, f.Size)
		known[f.LFN] = 0
	}
	w.submitted = []time.Duration{}
	for i := range rec.Jobs {
		j := &rec.Jobs[i]
		t := task{tries: j.Tries, job: taskqueue.Job{
			Name: j.Name, Step: j.Step, Digest: j.Name, Reads: j.Reads, Access: j.Access, Priority: j.Priority,
			Needs: taskqueue.Resources{MilliCPUs: j.MilliCPUs},
			Retry: taskqueue.Retry{Attempts: len(j.Tries), Backoff: j.Backoff},
		}}
		if len(j.Tries) == 0 {
			return nil, fmt.Errorf("job %s has no attempt", j.Name)
		}
		t.run = j.Tries[len(j.Tries)-1].Compute
		at := j.Submitted
		for _, lfn := range j.Reads {
			since, ok := known[lfn]
			if !ok {
				return nil, fmt.Errorf("job %s reads %s, which nothing makes", j.Name, lfn)
			}
			at = max(at, since)
		}
		for _, f := range j.Writes {
			o := taskqueue.Output{LFN: f.LFN}
			if f.CacheOnly {
				o.Storage = taskqueue.StorageCache
			}
			t.job.Writes = append(t.job.Writes, o)
			t.made = append(t.made, made{extant: extant{f.LFN, f.Size}})
			w.sizes[f.LFN] = f.Size
			known[f.LFN] = max(known[f.LFN], at)
		}
		override(&t.job.WaitForData, exp.TaskQueue.WaitForData)
		if t.made == nil {
			t.made = []made{}
		}
		w.append(t)
		w.submitted = append(w.submitted, at)
	}
	return w, nil
}

// try is what an attempt is to do, of a job that was recorded; nil: it was not.
func (t *task) try(n int) *RecordedTry {
	if len(t.tries) == 0 {
		return nil
	}
	return &t.tries[min(max(n, 1), len(t.tries))-1]
}

// beginRecorded submits each job when it was.
func (c *creator) beginRecorded(submitted []time.Duration) {
	order := make([]int, len(submitted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(submitted[a], submitted[b]) })
	for len(order) > 0 {
		n := 1
		for n < len(order) && submitted[order[n]] == submitted[order[0]] {
			n++
		}
		some := order[:n]
		order = order[n:]
		c.run.after(submitted[some[0]], func() { c.add(nil, some) })
	}
}

// oneCPU is what a pilot and a job have where nothing was recorded.
const oneCPU = 1000

// milliCPUs is what each pilot of the site has.
func (s *site) milliCPUs() int64 { return cmp.Or(s.run.recorded[s.Name].MilliCPUs, oneCPU) }

// waited is how long the n-th pilot of the site waits, from 1.
func (s *site) waited(n int) (time.Duration, bool) {
	waits := s.run.recorded[s.Name].Waits
	if len(waits) == 0 {
		return 0, false
	}
	return waits[(n-1)%len(waits)], true
}

// processors are those of a host, on which jobs slow each other down; nil: they do not.
func (s *site) processors(host string) *link {
	slowing := s.run.recorded[s.Name].Slowing
	if slowing <= 0 {
		return nil
	}
	if s.hosts[host] == nil {
		if s.hosts == nil {
			s.hosts = map[string]*link{}
		}
		l := newLink(&s.run.engine, 1, 0)
		l.slowing = slowing
		s.hosts[host] = l
	}
	return s.hosts[host]
}

// computeFor calls then when the job has computed so long, alone or beside others.
func (x *execution) computeFor(d time.Duration, then func()) {
	if x.processors == nil {
		x.after(d, then)
		return
	}
	x.transfer(x.processors, int64(d), then)
}

// tell says when a recorded command began and ended.
func (x *execution) tell(u *taskqueue.Usage) {
	if !x.isRecorded || x.computedAt == 0 {
		return
	}
	u.Start, u.End = epoch.Add(x.begun), epoch.Add(x.computedAt)
}

// tell keeps what became of an attempt of a replay.
func (r *run) tell(a *attempt, result *taskqueue.Result) {
	if r.recorded == nil {
		return
	}
	r.tries = append(r.tries, RecordedAttempt{
		Job: r.taskOf(&a.Assignment).job.Name, Pilot: string(a.pilot.id), Host: a.pilot.slot.host,
		Outcome: result.Outcome, Usage: result.Usage,
	})
}

// RecordedAttempt is an attempt of a replay, as a pilot would tell it.
type RecordedAttempt struct {
	Job, Pilot, Host string
	Outcome          taskqueue.Outcome
	Usage            taskqueue.Usage
}

// Epoch is the instant at which every replay begins, by the times of its attempts.
func Epoch() time.Time { return epoch }
