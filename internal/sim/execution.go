package sim

import (
	"math/rand/v2"
	"time"

	"fairway/internal/taskqueue"
)

// execution is what running a job takes, whoever runs it: accesses to storage
// spread over the run, then the outputs, one after the other.
type execution struct {
	run       *run
	element   *element
	reading   *rand.Rand
	writing   *rand.Rand // of its own: it meets the same failures whatever was cached
	compute   time.Duration
	reads     []input
	writes    []output
	done      func(taskqueue.Outcome, string)
	cacheOnly func(output) bool // for what may stay in caches; nil: nothing may
	computed  func()            // called before outputs are stored, if it is not nil
	await     func(f int, then func())
	keep      func(f int) // called when an input was staged in from storage; nil: inputs are read while the job computes

	job       string
	try       int
	staged    int           // inputs that were read before the job computes
	stageIn   time.Duration // time spent reading so far
	wrote     int           // outputs that are stored
	cancelled bool

	// Of a recorded job:
	isRecorded bool
	processors *link         // nil: others do not slow it down
	fails      bool          // its command
	storing    time.Duration // its outputs
	begun      time.Duration // its command
	computedAt time.Duration
	failAt     []int // by input: the access that fails, or -1
}

// input is a file to be read, and from where.
type input struct {
	pfn    string
	size   int64
	local  bool // on the node's own disk, which costs nothing here
	remote bool // on another node of the site

	sharers int64 // so many jobs divide it, each reading a part unless it is staged in; 0: it is read whole

	awaited  bool // somebody fetches it ahead
	streamed bool // by the command, from storage: no stage-in, and no copy of it stays
}

type output struct {
	taskqueue.FileRef
	pfn    string // empty: in caches only
	size   int64
	cached bool // it need not be stored, if the cache has room
}

// Accesses are the random streams of one try of a job in a run with this seed, wherever
// it runs: the first one of what it reads, the second of what it writes. Reading draws for each input in
// their order whether it fails ([rand.Rand.Float64]) and at which access (IntN), and then
// the delays. Writing draws for each output its delay and then whether it fails.
func Accesses(seed uint64, job string, try int) (reading, writing *rand.Rand) {
	return Stream(seed, "reading", named(job), uint64(try)), Stream(seed, "writing", named(job), uint64(try))
}

// draw gives an execution its random streams: those of one try of a job,
// wherever it runs.
func (x *execution) draw(job string, try int) {
	x.job, x.try = job, try
	x.reading, x.writing = Accesses(x.run.seed, job, try)
}

func (x *execution) begin() {
	n := x.run.exp.Workflow.Accesses
	x.failAt = make([]int, len(x.reads))
	for i, in := range x.reads {
		fails, at := x.reading.Float64() < float64(x.element.FailureRate), x.reading.IntN(n)
		x.failAt[i] = -1
		if in.pfn != "" && fails {
			x.failAt[i] = at
		}
	}
	if x.keep != nil {
		x.stage()
	} else {
		x.slice(0)
	}
}

// stage reads the inputs that are left, whole and one after the other, and then has the job
// compute.
func (x *execution) stage() {
	if x.staged == len(x.reads) {
		x.slice(0)
		return
	}
	f, began := x.staged, x.run.now
	in := x.reads[f]
	next := func() {
		if !in.streamed {
			x.stageIn += x.run.now - began
		}
		x.staged++
		x.stage()
	}
	switch {
	case in.awaited:
		x.await(f, func() {
			x.stageIn += x.run.now - began
			x.stage()
		})
	case in.local:
		next()
	case in.pfn == "" && !in.remote:
		x.done(taskqueue.StageInFailed, notReached)
	case in.remote:
		x.transfer(x.run.lan, in.size, next)
	default:
		x.stageFromStorage(f, next)
	}
}

// stageFromStorage reads an input whole. What it meets does not depend on what was cached of
// the others.
func (x *execution) stageFromStorage(f int, then func()) {
	in, n := x.reads[f], x.run.exp.Workflow.Accesses
	from := x.storageOf(in)
	if from == nil {
		return
	}
	random, _ := Accesses(x.run.seed, x.job, x.try)
	fails, last := false, 0
	for range f + 1 {
		fails, last = random.Float64() < float64(x.element.FailureRate), random.IntN(n)
	}
	size := in.size / int64(n) * int64(last+1)
	if !fails {
		last, size = n-1, in.size
	}
	var delay time.Duration
	for range last + 1 {
		delay += from.delay(random, x.compute, from.accesses(n, len(x.reads)))
	}
	x.fetch(from, size, delay, func() {
		if fails {
			x.run.faced[ReadFailed]++
			x.done(taskqueue.StageInFailed, "reading failed")
			return
		}
		x.keep(f)
		then()
	})
}

// slice runs one n-th of the job: one access to every input, then the
// computing that it feeds.
func (x *execution) slice(i int) {
	n := x.run.exp.Workflow.Accesses
	if i == n || len(x.reads) == x.staged {
		x.begun = x.run.now
		x.computeFor(x.compute/time.Duration(n)*time.Duration(n-i), func() {
			x.computedAt = x.run.now
			if x.fails {
				x.done(taskqueue.Exited, "as recorded")
				return
			}
			if x.computed != nil {
				x.computed()
			}
			x.after(x.storing, func() { x.write(0) })
		})
		return
	}
	x.access(i, 0, func() { x.after(x.compute/time.Duration(n), func() { x.slice(i + 1) }) })
}

// access reads the i-th part of input f and of those behind it.
func (x *execution) access(i, f int, then func()) {
	if f == len(x.reads) {
		then()
		return
	}
	in, began := x.reads[f], x.run.now
	next := func() {
		if !in.streamed {
			x.stageIn += x.run.now - began
		}
		if x.failAt[f] == i {
			x.run.faced[ReadFailed]++
			x.done(taskqueue.StageInFailed, "reading failed")
			return
		}
		x.access(i, f+1, then)
	}
	n := x.run.exp.Workflow.Accesses
	switch {
	case in.awaited:
		x.await(f, func() {
			x.stageIn += x.run.now - began
			if x.reads[f].pfn == "" {
				x.failAt[f] = -1
			}
			x.access(i, f, then)
		})
	case in.local:
		next()
	case in.pfn == "" && !in.remote:
		x.done(taskqueue.StageInFailed, notReached)
	case in.remote:
		x.transfer(x.run.lan, in.part(n), next)
	default:
		x.fromStorage(i, in, next)
	}
}

const notReached = "in no cache that this pilot reaches, and not in storage"

// fromStorage reads the i-th part of a file from the storage element that has it.
func (x *execution) fromStorage(i int, in input, then func()) {
	from := x.run.elementOf(in.pfn)
	if i == 0 {
		from = x.storageOf(in)
	}
	if from == nil || x.run.broken != nil {
		return
	}
	n := x.run.exp.Workflow.Accesses
	x.fetch(from, in.part(n), from.delay(x.reading, x.compute, from.accesses(n, len(x.reads))), then)
}

// part is how many bytes of an input one of n accesses reads.
func (i input) part(n int) int64 { return i.size / max(i.sharers, 1) / int64(n) }

// storageOf is the storage element that has an input that is to be read. It is nil where the
// input is lost, which ends the attempt, or the run is broken.
func (x *execution) storageOf(in input) *element {
	if why := x.run.damaged.stored[in.pfn]; why != "" {
		x.done(taskqueue.InputLost, in.pfn+" "+why)
		return nil
	}
	x.run.checkThere(in.pfn)
	from := x.run.elementOf(in.pfn)
	if x.run.broken != nil {
		return nil
	}
	return from
}

// accesses is how many there are to what a job reads, as far as the delay is shared out
// among them.
func (s *element) accesses(n, inputs int) int {
	if s.DelayOnce {
		return n * inputs
	}
	return n
}

// fetch reads so much from a storage element; between sites it also has to come over the
// wide area network.
func (x *execution) fetch(from *element, size int64, delay time.Duration, then func()) {
	from.read += size
	x.after(delay, func() {
		x.transfer(from.line, size, func() {
			if from == x.element {
				then()
				return
			}
			x.run.wide += size
			x.transfer(x.run.wan, size, then)
		})
	})
}

// write stores output i and those behind it.
func (x *execution) write(i int) {
	if i == len(x.writes) {
		x.done(taskqueue.Succeeded, "")
		return
	}
	out := &x.writes[i]
	if out.cached && x.cacheOnly != nil && x.cacheOnly(*out) {
		out.pfn, x.wrote = "", i+1
		x.write(i + 1)
		return
	}
	delay, bytes := time.Duration(0), int64(0) // what was recorded has its time already
	if !x.isRecorded {
		delay, bytes = x.element.delay(x.writing, x.compute, 1), out.size
	}
	x.after(delay, func() {
		x.transfer(x.element.line, bytes, func() {
			switch {
			case x.writing.Float64() < float64(x.element.FailureRate):
				x.run.faced[StoreFailed]++
				x.done(taskqueue.StageOutFailed, "writing failed")
			case x.element.has(out.pfn):
				x.run.fail("%s was stored twice", out.pfn)
			case !x.element.put(out.pfn, out.size):
				x.run.faced[StorageFull]++
				x.done(taskqueue.StageOutFailed, "the storage element is full")
			default:
				x.wrote = i + 1
				x.write(i + 1)
			}
		})
	})
}

func (x *execution) after(d time.Duration, do func()) {
	x.run.after(d, func() {
		if !x.cancelled {
			do()
		}
	})
}

func (x *execution) transfer(l *link, size int64, do func()) {
	l.send(size, func() {
		if !x.cancelled {
			do()
		}
	})
}
