package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"fairway/internal/dispatch"
)

// attempt is a running job on a pilot: it reads its inputs while it computes
// (CMS jobs stream; paper 3, section V), then stores its outputs.
type attempt struct {
	dispatch.Assignment
	pilot *pilot
	work  *execution
	pins  []dispatch.FileRef
	only  []dispatch.FileRef // outputs that it put into a cache instead of storage
	usage dispatch.Usage
	began time.Duration
}

func (a *attempt) ref() dispatch.AttemptRef {
	return dispatch.AttemptRef{Job: a.Job, Attempt: a.Attempt}
}

// execute starts an attempt on the pilot.
func (p *pilot) execute(as dispatch.Assignment) {
	t := &p.run.work.jobs[indexOf(as.Payload)]
	a := &attempt{Assignment: as, pilot: p, began: p.run.now}
	p.running = append(p.running, a)
	p.run.started()
	x := &execution{
		run: p.run, element: p.site.element, compute: time.Duration(float64(t.run) / p.site.Speed),
		rand: stream(p.run.seed, "attempt", uint64(as.Job), uint64(as.Try)),
		done: a.finish, keep: a.keepOnly,
	}
	for _, in := range as.Inputs {
		p.run.used(in.File, in.Size, false)
		x.reads = append(x.reads, a.locate(in))
	}
	for _, out := range as.Outputs {
		for _, f := range p.run.work.writes(t, out.Output) {
			w := output{FileRef: dispatch.FileRef{LFN: f.lfn, Version: out.Version, Tag: dispatch.Tag(as.Attempt)}, size: f.size}
			w.pfn = fmt.Sprintf("%s:%s.v%d.a%d", p.site.element.name, f.lfn, out.Version, as.Attempt)
			w.cached = out.Storage == dispatch.StorageCache
			x.writes = append(x.writes, w)
		}
	}
	a.work = x
	x.begin()
}

// locate finds an input: in the cache, in the cache of another host that
// shares it, or on the storage element. A cached file is pinned meanwhile.
func (a *attempt) locate(in dispatch.InputFile) input {
	p := a.pilot
	if p.space == nil {
		a.usage.CacheMisses++
		a.usage.BytesStaged += in.Size
		return input{pfn: in.PFN, size: in.Size}
	}
	holder, there := p.space.holds(in.File)
	if !there {
		a.usage.CacheMisses++
		a.usage.BytesStaged += in.Size
		return input{pfn: in.PFN, size: in.Size}
	}
	a.usage.CacheHits++
	a.usage.BytesCached += in.Size
	e := p.space.files[in.File]
	e.inUse++
	a.pins = append(a.pins, in.File)
	if holder.slot.host != p.slot.host && !p.space.onHost(e, p.slot.host) {
		return input{size: in.Size, remote: true}
	}
	p.space.shelf.Use(in.File)
	p.space.link(p, in.File, e)
	return input{size: in.Size, local: true}
}

// finish is called when the execution has ended one way or the other.
func (a *attempt) finish(o dispatch.Outcome, message string) {
	p := a.pilot
	a.release()
	p.running = slices.DeleteFunc(p.running, func(b *attempt) bool { return a == b })
	r := dispatch.Result{Job: a.Job, Attempt: a.Attempt, Outcome: o, Message: message, Usage: a.usage}
	r.Usage.StageInStart = epoch.Add(a.began)
	r.Usage.Start = r.Usage.StageInStart.Add(a.work.stageIn) // as if all reading came first
	r.Usage.End = p.run.instant()
	r.Usage.StageOutEnd = p.run.instant()
	r.Outputs = a.written()
	if o == dispatch.Succeeded {
		a.keepFiles()
	} else {
		a.forget()
	}
	p.run.attemptEnded(a, o)
	p.ended = append(p.ended, unacknowledged{r, p.seq + 1})
	p.startNext()
	p.sync()
}

// written lists what the attempt stored, also when it failed afterwards.
func (a *attempt) written() []dispatch.WrittenFile {
	var files []dispatch.WrittenFile
	for _, out := range a.work.writes[:a.work.wrote] {
		files = append(files, dispatch.WrittenFile{LFN: out.LFN, Version: out.Version, PFN: out.pfn, Size: out.size})
		a.usage.BytesWritten += out.size
	}
	return files
}

// keepFiles puts outputs, and inputs that came from storage, into the cache.
func (a *attempt) keepFiles() {
	if a.pilot.space == nil {
		return
	}
	for i, in := range a.Inputs {
		if a.pilot.run.exp.Cache.Inputs && a.work.reads[i].pfn != "" {
			a.keep(in.File, in.Size)
		}
	}
	for _, out := range a.work.writes {
		a.pilot.run.used(out.FileRef, out.size, true)
		a.keep(out.FileRef, out.size)
	}
}

func (a *attempt) keep(f dispatch.FileRef, size int64) {
	p := a.pilot
	if p.space.keep(p, f, size, p.site.element.costOf(size)) {
		p.run.checkLimit(p.space)
	}
}

// keepOnly puts an output that is to stay in caches into one, and says whether
// there was room. If not it is stored, as by internal/pilot.
func (a *attempt) keepOnly(out output) bool {
	s := a.pilot.space
	if s == nil {
		return false
	}
	before := s.files[out.FileRef] != nil
	a.keep(out.FileRef, out.size)
	there := s.files[out.FileRef] != nil
	if there && !before {
		a.only = append(a.only, out.FileRef)
	}
	return there
}

// forget takes outputs out of the cache that will not be committed.
func (a *attempt) forget() {
	for _, f := range a.only {
		if a.pilot.space.files[f] != nil {
			a.pilot.space.evict(f)
		}
	}
}

// stop ends the attempt because the TaskQueue says so.
func (a *attempt) stop() {
	a.work.cancelled = true
	a.finish(dispatch.Ended, "ended by the TaskQueue")
}

// cut ends the attempt because its pilot is gone.
func (a *attempt) cut() {
	a.work.cancelled = true
	a.release()
	a.pilot.run.attemptEnded(a, dispatch.Lost)
}

func (a *attempt) release() {
	for _, f := range a.pins {
		if e := a.pilot.space.files[f]; e != nil {
			e.inUse--
		}
	}
	a.pins = nil
}

// execution is what running a job takes, whoever runs it: accesses to storage
// spread over the run, then the outputs, one after the other.
type execution struct {
	run     *run
	element *element
	rand    *rand.Rand
	compute time.Duration
	reads   []input
	writes  []output
	done    func(dispatch.Outcome, string)
	keep    func(output) bool // for what may stay in caches; nil: nothing may

	stageIn   time.Duration // time spent reading so far
	wrote     int           // outputs that are stored
	cancelled bool
	failAt    []int // by input: the access that fails, or -1
}

// input is a file to be read, and from where.
type input struct {
	pfn    string
	size   int64
	local  bool // on the node's own disk, which costs nothing here
	remote bool // on another node of the site
}

type output struct {
	dispatch.FileRef
	pfn    string // empty: in caches only
	size   int64
	cached bool // it need not be stored, if the cache has room
}

func (x *execution) begin() {
	n := x.run.exp.Workflow.Accesses
	x.failAt = make([]int, len(x.reads))
	for i, in := range x.reads {
		x.failAt[i] = -1
		if in.pfn != "" && x.rand.Float64() < float64(x.element.FailureRate) {
			x.failAt[i] = x.rand.IntN(n)
		}
	}
	x.slice(0)
}

// slice runs one n-th of the job: one access to every input, then the
// computing that it feeds.
func (x *execution) slice(i int) {
	n := x.run.exp.Workflow.Accesses
	if i == n || len(x.reads) == 0 {
		x.after(x.compute/time.Duration(n)*time.Duration(n-i), func() { x.write(0) })
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
		x.stageIn += x.run.now - began
		if x.failAt[f] == i {
			x.run.faced[ReadFailed]++
			x.done(dispatch.StageInFailed, "reading failed")
			return
		}
		x.access(i, f+1, then)
	}
	n := x.run.exp.Workflow.Accesses
	switch {
	case in.local:
		next()
	case in.pfn == "" && !in.remote:
		x.done(dispatch.StageInFailed, "in no cache that this pilot reaches, and not in storage")
	case in.remote:
		x.transfer(&x.run.lan, in.size/int64(n), next)
	default:
		x.fromStorage(i, in, next)
	}
}

// fromStorage reads the i-th part of a file from the storage element that has
// it; between sites it also has to come over the wide area network.
func (x *execution) fromStorage(i int, in input, then func()) {
	if i == 0 {
		x.run.checkThere(in.pfn)
	}
	from := x.run.elementOf(in.pfn)
	if x.run.broken != nil {
		return
	}
	n := x.run.exp.Workflow.Accesses
	part := in.size / int64(n)
	from.read += part
	accesses := n
	if from.DelayOnce {
		accesses *= len(x.reads)
	}
	x.after(from.delay(x.rand, x.compute, accesses), func() {
		x.transfer(&from.line, part, func() {
			if from == x.element {
				then()
				return
			}
			x.run.wide += part
			x.transfer(&x.run.wan, part, then)
		})
	})
}

// write stores output i and those behind it.
func (x *execution) write(i int) {
	if i == len(x.writes) {
		x.done(dispatch.Succeeded, "")
		return
	}
	out := &x.writes[i]
	if out.cached && x.keep != nil && x.keep(*out) {
		out.pfn, x.wrote = "", i+1
		x.write(i + 1)
		return
	}
	x.after(x.element.delay(x.rand, x.compute, 1), func() {
		x.transfer(&x.element.line, out.size, func() {
			switch {
			case x.rand.Float64() < float64(x.element.FailureRate):
				x.run.faced[StoreFailed]++
				x.done(dispatch.StageOutFailed, "writing failed")
			case x.element.has(out.pfn):
				x.run.fail("%s was stored twice", out.pfn)
			case !x.element.put(out.pfn, out.size):
				x.run.faced[StorageFull]++
				x.done(dispatch.StageOutFailed, "the storage element is full")
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
