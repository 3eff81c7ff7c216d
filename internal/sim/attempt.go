package sim

import (
	"fmt"
	"slices"
	"time"

	"fairway/internal/taskqueue"
)

// attempt is a running job on a pilot: it reads its inputs while it computes
// (CMS jobs stream; paper 3, section V), then stores its outputs.
type attempt struct {
	taskqueue.Assignment
	pilot *pilot
	work  *execution
	pins  []*stored // files of the space that it uses
	usage taskqueue.Usage
	began time.Duration

	yielded bool // the next one may run: only its outputs are to be stored
	waits   bool // for the other tasks of its job
}

// execute starts an attempt on the pilot.
func (p *pilot) execute(as taskqueue.Assignment) {
	t := p.run.taskOf(&as)
	a := &attempt{Assignment: as, pilot: p, began: p.run.now}
	p.running = append(p.running, a)
	p.run.started()
	x := &execution{
		run: p.run, element: p.site.element, compute: time.Duration(float64(t.run) / p.site.Speed),
		done: a.finish, cacheOnly: a.cacheOutput, computed: func() { p.yield(a) }, await: a.await,
	}
	if p.site.StagesIn {
		x.keep = a.keepInput
	}
	begin := x.begin
	if try := t.try(as.Try); try != nil {
		x.compute = time.Duration(float64(try.Compute) / p.site.Speed)
		x.fails, x.storing, x.processors = try.Failed, try.StageOut, p.site.processors(p.slot.host)
		x.isRecorded = true
		begin = func() { x.after(try.Setup, x.begin) }
	}
	x.draw(t.job.Name, as.Try)
	for _, in := range as.Inputs {
		p.run.used(in.File, in.Size, false)
		read := a.locate(in)
		read.sharers = t.sharers
		x.reads = append(x.reads, read)
	}
	for _, out := range as.Outputs {
		if as.Task > 0 {
			break // the first task writes them
		}
		for _, f := range p.run.work.writes(t, out.Output) {
			w := output{FileRef: taskqueue.FileRef{LFN: f.lfn, Version: out.Version, Tag: taskqueue.Tag(as.Attempt)},
				size: f.size}
			w.pfn = fmt.Sprintf("%s:%s.v%d.a%d", p.site.element.name, f.lfn, out.Version, as.Attempt)
			w.cached = out.Storage == taskqueue.StorageCache
			x.writes = append(x.writes, w)
		}
	}
	a.work = x
	if as.Tasks > 0 {
		a.joinGang()
		return
	}
	begin()
}

// begun reports whether the job computes, or has. One that reads its inputs meanwhile does so
// from the start.
func (a *attempt) begun() bool {
	return !a.waits && (a.work.keep == nil || a.work.staged == len(a.work.reads))
}

// locate finds an input: in the cache, in the cache of another host that
// shares it, or on the storage element. A cached file is pinned meanwhile. One that is
// streamed comes from no other host.
func (a *attempt) locate(in taskqueue.InputFile) input {
	p := a.pilot
	stored := input{pfn: in.PFN, size: in.Size, streamed: in.Access == taskqueue.AccessStream && in.PFN != ""}
	if p.space == nil {
		return a.missed(stored)
	}
	holder, ok := p.space.holds(in.File)
	if ok && p.space.files[in.File].changed && p.space.idle(in.File) {
		p.space.evict(in.File)
		ok = false
	}
	if !ok && !stored.streamed && p.space.isFetched(in.File) {
		return input{pfn: in.PFN, size: in.Size, awaited: true}
	}
	if !ok {
		return a.missed(stored)
	}
	e := p.space.files[in.File]
	if stored.streamed && holder.slot.host != p.slot.host && !p.space.onHost(e, p.slot.host) {
		return a.missed(stored)
	}
	a.usage.CacheHits++
	a.usage.BytesCached += in.Size
	e.inUse++
	a.pins = append(a.pins, e)
	if holder.slot.host != p.slot.host && !p.space.onHost(e, p.slot.host) {
		return input{size: in.Size, remote: true}
	}
	p.space.order.Use(in.File)
	p.space.link(p, in.File, e)
	return input{size: in.Size, local: true}
}

// missed counts an input that is staged in from storage, which one that is streamed is not.
func (a *attempt) missed(in input) input {
	if !in.streamed {
		a.usage.CacheMisses++
		a.usage.BytesStaged += in.size
	}
	return in
}

// await calls then when input f, which somebody fetched ahead when the attempt was assigned, is there
// or cannot be had. That may have come by the time that the attempt asks for it.
func (a *attempt) await(f int, then func()) {
	in := a.Inputs[f]
	found := func() {
		if !a.work.cancelled {
			a.work.reads[f] = a.locate(in)
			then()
		}
	}
	if s := a.pilot.space; s.isFetched(in.File) {
		s.fetched[in.File] = append(s.fetched[in.File], found)
		return
	}
	found()
}

// finish is called when the execution has ended one way or the other.
func (a *attempt) finish(o taskqueue.Outcome, message string) {
	p := a.pilot
	if !slices.Contains(p.running, a) || p.waitsForThaw(func() { a.finish(o, message) }) {
		return // it was ended while the pilot stood still, or does not know yet how it ended
	}
	a.release()
	p.running = slices.DeleteFunc(p.running, func(b *attempt) bool { return a == b })
	r := taskqueue.Result{Job: a.Job, Attempt: a.Attempt, Outcome: o, Message: message, Usage: a.usage}
	r.GangPlace = a.GangPlace
	r.Usage.StageInStart = epoch.Add(a.began)
	r.Usage.Start = r.Usage.StageInStart.Add(a.work.stageIn) // as if all reading came first
	r.Usage.End = p.run.instant()
	r.Usage.StageOutEnd = p.run.instant()
	a.work.tell(&r.Usage)
	p.run.tell(a, &r)
	r.Outputs = a.written()
	if o == taskqueue.InputLost {
		r.Lost = a.lost()
	}
	if o == taskqueue.Succeeded {
		a.cacheFiles()
	} else {
		a.forget()
	}
	p.run.attemptEnded(a, o)
	p.ended = append(p.ended, unacknowledged{r, p.seq + 1})
	p.startNext()
	p.sync()
}

// written lists what the attempt stored, also when it failed afterwards.
func (a *attempt) written() []taskqueue.WrittenFile {
	var files []taskqueue.WrittenFile
	for _, out := range a.work.writes[:a.work.wrote] {
		files = append(files, taskqueue.WrittenFile{LFN: out.LFN, Version: out.Version, PFN: out.pfn, Size: out.size})
		a.usage.BytesWritten += out.size
	}
	return files
}

// cacheFiles puts outputs, and inputs that came from storage, into the cache, but for those
// that were streamed.
func (a *attempt) cacheFiles() {
	if a.pilot.space == nil {
		return
	}
	for i, in := range a.Inputs {
		if read := &a.work.reads[i]; a.pilot.run.exp.Cache.Inputs && read.pfn != "" && !read.streamed {
			a.cacheFile(in.File, in.Size)
		}
	}
	for _, out := range a.work.writes {
		a.pilot.run.used(out.FileRef, out.size, true)
		a.cacheFile(out.FileRef, out.size)
	}
}

// keepInput puts an input into the cache that was staged in, where it stays while the attempt
// runs.
func (a *attempt) keepInput(f int) {
	s, in := a.pilot.space, &a.Inputs[f]
	if s == nil || !a.pilot.run.exp.Cache.Inputs || a.work.reads[f].streamed {
		return
	}
	a.cacheFile(in.File, in.Size)
	if e := s.files[in.File]; e != nil {
		e.inUse++
		a.pins = append(a.pins, e)
		a.pilot.reportSoon()
	}
}

func (a *attempt) cacheFile(f taskqueue.FileRef, size int64) {
	p := a.pilot
	if p.space.insert(p, f, size, p.site.element.costOf(size)) {
		p.run.checkLimit(p.space)
	}
}

// cacheOutput puts an output that is to stay in caches into one, and reports whether
// there was room. If not it is stored, as by internal/pilot.
func (a *attempt) cacheOutput(out output) bool {
	s := a.pilot.space
	if s == nil {
		return false
	}
	a.cacheFile(out.FileRef, out.size)
	return s.files[out.FileRef] != nil
}

// forget takes outputs out of the cache that will not be committed.
func (a *attempt) forget() {
	if a.pilot.space == nil {
		return
	}
	for _, out := range a.work.writes {
		if a.pilot.space.files[out.FileRef] != nil {
			a.pilot.space.evict(out.FileRef)
		}
	}
}

// stop ends the attempt because the TaskQueue says so.
func (a *attempt) stop() {
	a.work.cancelled = true
	a.finish(taskqueue.Ended, "ended by the TaskQueue")
}

// cut ends the attempt because its pilot is gone.
func (a *attempt) cut() {
	a.work.cancelled = true
	a.release()
	a.pilot.run.attemptEnded(a, taskqueue.Lost)
}

func (a *attempt) release() {
	for _, e := range a.pins {
		e.inUse--
	}
	a.pins = nil
}
