package forecast

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"fairway/internal/history"
	"fairway/internal/sim"
	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// ErrNothing is that of a run in which no attempt has ended.
var ErrNothing = errors.New("nothing was executed in this run")

// Model is a recorded run as it can be replayed. It is not changed by replays.
type Model struct {
	// Recorded is from the submission of the first job to the end of the last attempt, and Replayed what
	// the replay of the same takes.
	Recorded, Replayed time.Duration
	// Notes say what could not be fitted, one sentence each.
	Notes []string
	// Cache is how pilots seem to have kept files.
	Cache experiment.Share

	files  []sim.RecordedFile
	jobs   []sim.RecordedJob
	sites  []*site
	link   line
	slow   float64 // of jobs that compute side by side: sim.RecordedSite.Slowing
	around around
	steps  map[string]*stepTimes
	path   string // the step that takes most of the critical path; empty: none
	ahead  bool   // pilots fetched files ahead
	reads  bool   // files were read from storage or caches
	needs  int64  // the most that a job asks for, in thousandths of a processor

	outputs map[string]*sizes // by step; of Earlier
}

// site is where pilots of the run were.
type site struct {
	name      string
	pilots    int // at most at a time
	hosts     int
	milliCPUs int64 // that jobs of a pilot took at most
	waits     []time.Duration
}

// stepTimes are the tries of a step, to draw from: those of commands that succeeded, and others.
type stepTimes struct {
	good, failed []sim.RecordedTry
	reused       bool // they are of earlier runs
}

// Of fits a model to a run, and replays it as it was. The error is ErrNothing, or that of a replay.
func Of(run *history.Run) (*Model, error) {
	m := &Model{steps: map[string]*stepTimes{}}
	begin, end := run.Bounds()
	m.Recorded = end.Sub(begin)
	why := run.Explain()
	if why == nil || m.Recorded <= 0 {
		return nil, ErrNothing
	}
	o := observe(run)
	m.around, m.link, m.slow = o.around(), o.line(), 0
	m.fitSlowing(o)
	m.sites = o.sites(m.around.reaction)
	m.keptFiles(o)
	for _, s := range why.Steps {
		if m.path == "" && s.Step != "" {
			m.path = s.Step
		}
	}
	m.describe(o, begin)
	replayed, err := m.replay(&Change{}, m.jobs)
	if err != nil {
		return nil, err
	}
	m.Replayed = replayed
	if off := m.Replayed.Seconds()/m.Recorded.Seconds() - 1; off > farOff || off < -farOff {
		m.Notes = append(m.Notes, "The replay of the run as it was is far from the recorded time, so what is foretold is "+
			"rough. Something else than jobs, pilots and files took time, or the run was interrupted.")
	}
	return m, nil
}

// farOff is from which error of a replay on a note says so.
const farOff = 0.15

// Slots is how many jobs of one processor the pilots of the run could run side by side.
func (m *Model) Slots() int {
	n := 0
	for _, s := range m.sites {
		n += s.pilots * max(1, int(s.milliCPUs/wholeCPU))
	}
	return n
}

// Pilots is how many pilots the run had at most at a time.
func (m *Model) Pilots() int {
	n := 0
	for _, s := range m.sites {
		n += s.pilots
	}
	return n
}

// LongestStep is the step that takes most of the critical path.
func (m *Model) LongestStep() string { return m.path }

// HasStep reports whether jobs of the step were executed.
func (m *Model) HasStep(name string) bool { return m.steps[name] != nil }

// wholeCPU is what a job takes that does not say, in thousandths of a processor.
const wholeCPU = 1000

// describe makes of each job that was executed one that can be replayed.
func (m *Model) describe(o *observed, begin time.Time) {
	made := map[string]bool{}
	there := map[string]bool{}
	for _, j := range o.jobs {
		r := sim.RecordedJob{
			Name: j.Name, Step: j.Step, Priority: j.Priority, MilliCPUs: j.MilliCPUs,
			Submitted: o.submitted(j, begin), Backoff: o.backoff[j.Step],
		}
		reads := map[string]bool{}
		for _, f := range j.Reads {
			if reads[f.LFN] {
				continue
			}
			reads[f.LFN] = true
			if !made[f.LFN] && !there[f.LFN] {
				there[f.LFN] = true
				m.files = append(m.files, sim.RecordedFile{LFN: f.LFN, Size: f.Size})
			}
			access := taskqueue.AccessLink
			if f.Streamed {
				access = taskqueue.AccessStream
			}
			r.Reads, r.Access = append(r.Reads, f.LFN), append(r.Access, access)
		}
		for _, f := range j.Writes {
			made[f.LFN] = true
			r.Writes = append(r.Writes, sim.RecordedFile{LFN: f.LFN, Size: f.Size, CacheOnly: f.CacheOnly})
		}
		for i := range j.Attempts {
			if a := &j.Attempts[i]; isTimed(a) && !wasGivenBack(a) {
				r.Tries = append(r.Tries, m.try(o, a))
			}
		}
		if len(r.Tries) == 0 {
			r.Tries = []sim.RecordedTry{{}}
		}
		m.needs = max(m.needs, j.MilliCPUs)
		m.jobs = append(m.jobs, r)
		m.remember(&r)
	}
}

// wasGivenBack reports whether an attempt was taken from its pilot before its command began, which
// is no failure.
func wasGivenBack(a *history.Attempt) bool { return a.Start.IsZero() && a.Outcome == "ended" }

// remember keeps the tries of a job for draws.
func (m *Model) remember(r *sim.RecordedJob) {
	s := m.steps[r.Step]
	if s == nil {
		s = new(stepTimes)
		m.steps[r.Step] = s
	}
	for _, t := range r.Tries {
		if t.Failed {
			s.failed = append(s.failed, t)
		} else {
			s.good = append(s.good, t)
		}
	}
}

// try is what an attempt took, without reading its inputs from storage.
func (m *Model) try(o *observed, a *history.Attempt) sim.RecordedTry {
	t := sim.RecordedTry{Setup: m.around.between, Failed: a.Failed}
	staging := m.link.takes(a.BytesRead-a.BytesCached, o.beside[a].staging)
	if a.Start.IsZero() {
		t.Compute = max(0, a.Ended().Sub(a.Begin())-staging)
		return t
	}
	t.Setup += max(0, a.Start.Sub(a.Begin())-staging)
	t.Compute = time.Duration(float64(a.End.Sub(a.Start)) / (1 + m.slow*max(0, o.beside[a].computing-1)))
	t.StageOut = a.Ended().Sub(a.End)
	return t
}

// keptFiles finds how pilots kept files, by what attempts told of caches.
func (m *Model) keptFiles(o *observed) {
	m.Cache = experiment.NoCache
	hits, remote := 0, 0
	for _, p := range o.all {
		hits, remote = hits+p.attempt.CacheHits, remote+p.attempt.RemoteHits
		m.ahead = m.ahead || p.attempt.StagedAhead > 0
		m.reads = m.reads || p.attempt.BytesRead > 0
	}
	switch {
	case remote > 0:
		m.Cache = experiment.GlobalCache
	case hits > 0:
		m.Cache = experiment.HostCache
	}
}

// placed is an attempt with its job.
type placed struct {
	job     *history.Job
	attempt *history.Attempt
}

// observed is a recorded run in the orders in which it is measured.
type observed struct {
	jobs    []*history.Job // with an attempt, by their numbers
	byID    map[uint32]*history.Job
	all     []placed            // by begin
	pilots  map[string][]placed // by name, each by begin
	names   []string            // of pilots, by their first attempts
	beside  map[*history.Attempt]beside
	backoff map[string]time.Duration // by step, before the second try
}

// beside is how many attempts of the host did the same as one, in the mean over its time, with it.
type beside struct{ computing, staging float64 }

func isTimed(a *history.Attempt) bool {
	return !a.Begin().IsZero() && !a.Ended().Before(a.Begin()) && (a.Start.IsZero() || !a.End.Before(a.Start))
}

func observe(run *history.Run) *observed {
	o := &observed{byID: map[uint32]*history.Job{}, pilots: map[string][]placed{}, backoff: map[string]time.Duration{}}
	for i := range run.Jobs {
		j := &run.Jobs[i]
		if !slices.ContainsFunc(j.Attempts, func(a history.Attempt) bool { return isTimed(&a) }) {
			continue
		}
		o.jobs = append(o.jobs, j)
		o.byID[j.ID] = j
		for k := range j.Attempts {
			if a := &j.Attempts[k]; isTimed(a) {
				o.all = append(o.all, placed{j, a})
			}
		}
	}
	slices.SortStableFunc(o.jobs, func(a, b *history.Job) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(o.all, func(a, b placed) int {
		return cmp.Or(a.attempt.Begin().Compare(b.attempt.Begin()), cmp.Compare(a.job.ID, b.job.ID))
	})
	for _, p := range o.all {
		if o.pilots[p.attempt.Pilot] == nil {
			o.names = append(o.names, p.attempt.Pilot)
		}
		o.pilots[p.attempt.Pilot] = append(o.pilots[p.attempt.Pilot], p)
	}
	o.countBeside()
	o.findBackoff()
	return o
}

// ready is when a job could have begun: it was submitted, and what it reads was there.
func (o *observed) ready(j *history.Job) time.Time {
	at := j.Submitted
	for _, id := range j.After {
		if b := o.byID[id]; b != nil && b != j && b.Last() != nil && b.Last().Ended().After(at) {
			at = b.Last().Ended()
		}
	}
	return at
}

// madeSoon is for how long after the end of a job others may be submitted that follow from it.
const madeSoon = 2 * time.Second

// submitted is when a job is to be submitted in a replay. One that was made since another had ended
// waits for that anyhow.
func (o *observed) submitted(j *history.Job, begin time.Time) time.Duration {
	for _, id := range j.After {
		if b := o.byID[id]; b != nil && b.Last() != nil {
			if since := j.Submitted.Sub(b.Last().Ended()); since >= 0 && since < madeSoon {
				return 0
			}
		}
	}
	return max(0, j.Submitted.Sub(begin))
}
