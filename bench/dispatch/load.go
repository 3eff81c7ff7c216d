package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"fairway/bench/measure"
	"fairway/internal/dispatch"
	"fairway/internal/taskqueue"
)

// run is the one run that there is.
const run taskqueue.RunID = 1

const (
	files     = 100_000
	pilots    = 1_000
	hosts     = 100
	heldFiles = 10
	reads     = 3
	batch     = 1_000
	warmUp    = 10_000 // jobs, until pilots and memory are in their steady state
)

// load drives a Core at a constant length of its queue.
type load struct {
	name   string
	core   *dispatch.Core
	rng    *rand.Rand
	now    time.Time
	jobs   int // made so far
	queued int // of these
	pilots []*pilot
	bytes  int           // of records, so that making them is not optimised away
	spent  time.Duration // in the core
	err    error
}

// pilot is as much of a pilot as the core can see.
type pilot struct {
	id     taskqueue.PilotID
	seq    uint64
	last   uint64
	runs   []taskqueue.Assignment
	parked bool
}

func newLoad(name string) *load {
	l := &load{name: name, rng: rand.New(rand.NewPCG(1, 2)), now: time.Unix(1_800_000_000, 0)}
	l.core, _ = dispatch.New(taskqueue.Config{})
	l.step(taskqueue.SetRun{Run: taskqueue.Run{ID: run}})
	for i := 0; i < files; i += batch {
		add := taskqueue.AddFiles{Run: run}
		for k := i; k < i+batch; k++ {
			add.Files = append(add.Files, taskqueue.ExistingFile{LFN: lfn(k), PFN: "se:" + lfn(k), Size: 1 << 30, Identity: "1"})
		}
		l.step(add)
	}
	for i := range pilots {
		l.pilots = append(l.pilots, &pilot{id: taskqueue.PilotID(fmt.Sprintf("pilot%d", i))})
	}
	return l
}

var lfns = func() []string {
	list := make([]string, files)
	for k := range list {
		list[k] = fmt.Sprintf("raw/file%06d.root", k)
	}
	return list
}()

func lfn(k int) string { return lfns[k] }

func (l *load) step(in taskqueue.Input) {
	l.now = l.now.Add(time.Microsecond)
	start := time.Now()
	e, err := l.core.Step(l.now, in)
	l.spent += time.Since(start)
	if err != nil && l.err == nil {
		l.err = err
	}
	for _, r := range e.Persist {
		l.bytes += len(r.Body)
	}
	for _, r := range e.Replies {
		l.take(r)
	}
}

func (l *load) take(r taskqueue.Reply) {
	var n int
	if _, err := fmt.Sscanf(string(r.Pilot), "pilot%d", &n); err != nil || r.Answer.Superseded {
		return
	}
	p := l.pilots[n]
	p.last, p.parked = r.Answer.Number, false
	p.runs = append(p.runs, r.Answer.Run...)
}

func jobName(number int) string { return fmt.Sprintf("reco/%07d", number) }

// submit makes n jobs, unfit ones if so told.
func (l *load) submit(n int, unfit bool) {
	sub := taskqueue.Submit{Run: run, Jobs: make([]taskqueue.Job, n)}
	for i := range sub.Jobs {
		l.jobs++
		name := jobName(l.jobs)
		j := taskqueue.Job{
			Name: name, Step: "reco", Payload: []byte("reco --in raw --out " + name),
			Digest: "0123456789abcdef", Writes: []taskqueue.Output{{LFN: "out/" + name}},
		}
		for len(j.Reads) < reads {
			j.Reads = append(j.Reads, lfn(l.rng.IntN(files/reads)*reads+len(j.Reads)))
		}
		if l.name == "popular" {
			j.Reads[0] = lfn(0)
		}
		if unfit {
			j.Tools = []string{"unheard-of"}
		}
		sub.Jobs[i] = j
	}
	l.step(sub)
}

func (l *load) register() {
	for i, p := range l.pilots {
		p.seq++
		s := taskqueue.Sync{Pilot: p.id, Seq: p.seq, Full: true, Hold: true, Hello: &taskqueue.PilotInfo{
			Host: fmt.Sprintf("host%d", i%hosts), Site: "local", Has: taskqueue.Resources{MilliCPUs: 1000},
		}}
		for range heldFiles {
			s.CacheAdded = append(s.CacheAdded, taskqueue.CachedFile{File: taskqueue.FileRef{LFN: lfn(l.rng.IntN(files))}})
		}
		if l.name == "popular" {
			s.CacheAdded[0].File.LFN = lfn(0)
		}
		p.parked = true
		l.step(s)
	}
}

// sync has a pilot report its first attempt as done, if it has one.
func (l *load) sync(p *pilot) bool {
	p.seq++
	s := taskqueue.Sync{Pilot: p.id, Seq: p.seq, LastAnswer: p.last, Hold: true}
	if len(p.runs) > 0 {
		a := &p.runs[0]
		o := &a.Outputs[0]
		s.Ended = []taskqueue.Result{{Job: a.Job, Attempt: a.Attempt, Outputs: []taskqueue.WrittenFile{{
			LFN: o.LFN, Version: o.Version, Size: 1 << 20, PFN: fmt.Sprintf("se:%s.v%d.a%d", o.LFN, o.Version, a.Attempt),
		}}}}
		p.runs = p.runs[1:]
	}
	p.parked = true
	l.step(s)
	return len(s.Ended) > 0
}

// run takes n jobs through, and keeps the length of the queue. Submissions
// come a hundred at a time.
func (l *load) run(n int) {
	const together = 100
	for done, next := 0, 0; done < n; {
		l.submit(together, false)
		for got := 0; got < together && l.err == nil; next++ {
			p := l.pilots[next%pilots]
			if l.name == "unfit" && len(p.runs) == 0 {
				l.sync(p) // in vain
				continue
			}
			if l.sync(p) {
				got++
				done++
			}
		}
	}
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// filled returns a load with so many jobs queued, in its steady state, and the
// memory that each of these takes.
func filled(name string, queued int) (*load, float64) {
	l := newLoad(name)
	l.queued = queued
	before := heap()
	for n := 0; n < queued; n += batch {
		l.submit(min(batch, queued-n), name == "unfit")
	}
	bytes := (heap() - before) / float64(queued)
	l.register()
	l.run(warmUp)
	return l, bytes
}

// measureRows measures one row at several lengths of the queue. All are in
// memory together and their rounds alternate, so that a time in which the
// machine is slow counts in each.
func measureRows(name string, queued []int, jobs, rounds int) ([]row, error) {
	rows := make([]row, len(queued))
	loads := make([]*load, len(queued))
	for i, n := range queued {
		rows[i] = row{Name: name, Queued: n}
		loads[i], rows[i].BytesPerJob = filled(name, n)
	}
	spent := make([][]float64, len(queued))
	for range rounds {
		for i, l := range loads {
			spent[i] = append(spent[i], l.round(jobs))
		}
	}
	for i, l := range loads {
		rows[i].Microsecs = measure.Median(spent[i])
		if l.err != nil {
			return nil, fmt.Errorf("%s with %d jobs queued: %w", name, queued[i], l.err)
		}
	}
	return rows, nil
}

// lookUp asks n times for the files of a queued job by its name: what they are, where they
// are stored, and how many pilots hold them.
func (l *load) lookUp(n int) {
	names := make([]string, n)
	for i := range names {
		names[i] = jobName(l.jobs - l.rng.IntN(l.queued))
	}
	start := time.Now()
	for _, name := range names {
		id, ok := l.core.JobNamed(run, name)
		job, _ := l.core.Detail(id)
		if !ok || len(job.Reads) != reads {
			l.err = fmt.Errorf("%s: %d files", name, len(job.Reads))
			return
		}
	}
	l.spent += time.Since(start)
}

// round takes n jobs through, or looks them up, and returns the microseconds for each.
func (l *load) round(n int) float64 {
	l.spent = 0
	if l.name == "lookup" {
		l.lookUp(n)
	} else {
		l.run(n)
	}
	return float64(l.spent.Nanoseconds()) / 1000 / float64(n)
}
