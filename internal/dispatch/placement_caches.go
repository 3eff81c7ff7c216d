package dispatch

import (
	"slices"

	"fairway/internal/eviction"
	"fairway/internal/taskqueue"
)

// A pilot is told which files of its cache may go first once the cache is half
// full (hintsFrom), and again whenever a sixteenth of it (hintsAfter)
// has come in or is about to. So this costs little however many files there
// are. Up to maxEvict files are named; those that it does not name are to stay
// longest.
const (
	hintsFrom  = 2
	hintsAfter = 16
	maxEvict   = 256
)

// maxPrefetch bounds the files that one answer asks to fetch ahead of their
// jobs.
const maxPrefetch = 16

// maxPassed bounds the requests that are passed over to find who reads a
// version next. Where so many jobs read it already, it is needed soon enough.
const maxPassed = 64

// hints are what a pilot is told of its cache.
type hints struct {
	incoming int64               // bytes that came in since the last one, or will for its jobs
	order    []taskqueue.FileRef // until the pilot has it
	stale    int                 // so many at the front of it nobody may read
	number   uint64              // of the answer that carried order first, 0 if none did
}

// addHints puts into an answer which files may go first, unless the pilot knows,
// and which to fetch ahead.
func (pl *placement) addHints(p *pilot, a *taskqueue.Answer) {
	x := &p.copies.hints
	if x.number != 0 && p.talk.acked >= x.number {
		x.order, x.stale, x.number = nil, 0, 0
	}
	if pl.hintsDue(p) {
		x.order, x.stale = pl.evictionOrder(p)
		x.number = 0
	}
	if x.order != nil && x.number == 0 {
		x.number = a.Number
	}
	a.Evict, a.Stale = x.order, x.stale
	a.Prefetch = pl.prefetch(p)
}

// hintsDue reports whether the cache is full enough and has changed enough.
func (pl *placement) hintsDue(p *pilot) bool {
	limit := p.cacheLimit()
	if limit <= 0 || p.copies.hints.incoming*hintsAfter < limit {
		return false
	}
	p.copies.hints.incoming = 0
	var used int64
	for _, v := range p.copies.versions {
		used += v.size
	}
	for _, size := range p.copies.other.All() {
		used += size
	}
	return used*hintsFrom >= limit
}

// evictionOrder is the beginning of the order in which the pilot's files may
// go: first copies that nobody may read, and how many those are.
func (pl *placement) evictionOrder(p *pilot) (order []taskqueue.FileRef, stale int) {
	queued, turns := p.queuedReads()
	files := pl.candidates[:0]
	for _, v := range p.copies.versions {
		f := eviction.NextRead[taskqueue.FileRef]{File: pl.files.copyAt(p, v), Size: v.size}
		if f.Rank, f.Read = queued[v]; !f.Read {
			var id uint32
			id, f.Read = pl.nextReader(v)
			f.Rank = turns + uint64(id)
		}
		f.Last = f.Read && pl.fleet.isLastCopy(p, v)
		files = append(files, f)
	}
	pl.candidates = files
	eviction.NextUseOrder(files)
	order = pl.stale(p)
	order = order[:min(len(order), maxEvict)]
	stale = len(order)
	rest := files[:min(len(files), maxEvict-stale)]
	order = slices.Grow(order, len(rest))
	for i := range rest {
		order = append(order, rest[i].File)
	}
	return order, stale
}

// nextReader returns the job that reads the version next in the expected order,
// of those that no pilot has yet, and whether there is one.
func (pl *placement) nextReader(v *version) (rank uint32, ok bool) {
	var next uint32
	for i := range v.ready { // also those that have left the FIFO
		if id, ok := pl.jobs.topOf(&v.ready[i]); ok && (next == 0 || id < next) {
			next = id
		}
	}
	passed := 0
	for r := v.file.fifo.Head(); r != nil && r.Owner.about().Version <= v.number && passed <= maxPassed; r = r.Next() {
		if j := r.Owner.job; r.Owner.read == v && (j.state < taskqueue.Assigned || passed == maxPassed) {
			if next == 0 || j.row < next {
				next = j.row
			}
			break
		}
		passed++
	}
	return next, next != 0
}

// stale are the copies of a pilot that nobody may read, the largest first. Those
// of an attempt that runs may still become ones of its version, or a checkpoint.
func (pl *placement) stale(p *pilot) []taskqueue.FileRef {
	return p.copies.other.Without(func(r taskqueue.FileRef) bool {
		return pl.fleet.attempts[taskqueue.AttemptID(r.Tag)] != nil || pl.files.saves[r.Tag]
	})
}

// mayPrefetch reports whether inputs of an attempt may come to its pilot before its turn.
func (a *attempt) mayPrefetch() bool { return a.ahead && !a.started && !a.leaves() }

// prefetch are the inputs of jobs that wait at the pilot, and then of those that it is expected
// to get next, as far as it would have to read them from storage and its own cache has room for
// them beside those of the jobs before.
func (pl *placement) prefetch(p *pilot) []taskqueue.InputFile {
	pl.expectNext(p)
	if len(p.seat.next) == 0 && (p.info.CacheSize == 0 || !slices.ContainsFunc(p.attempts, (*attempt).mayPrefetch)) {
		return nil // most often; a job may read any number of files
	}
	x := prefetching{pilot: p, room: p.info.CacheSize}
	for _, a := range p.attempts {
		x.add(pl, a.job, a, a.mayPrefetch())
	}
	for _, j := range p.seat.next {
		x.add(pl, j, nil, true)
	}
	return x.files
}

// prefetching gathers what a pilot is to fetch ahead.
type prefetching struct {
	pilot *pilot
	room  int64 // that is left in its cache; below 0: no more is fetched
	files []taskqueue.InputFile
}

// add counts the inputs of a job, and has those fetched that are to be. The attempt is nil
// of a job that is not assigned.
func (x *prefetching) add(pl *placement, j *job, a *attempt, fetch bool) {
	for i := range j.requests {
		r := &j.requests[i]
		if !r.staged() {
			continue
		}
		if x.room -= r.read.size; x.room < 0 || len(x.files) == maxPrefetch {
			x.room = -1
			return
		}
		if fetch && r.read.pfn != "" && !x.pilot.reaches(r.read) {
			in := pl.files.inputFor(x.pilot, r.read)
			if a != nil {
				in.Source = pl.fleet.sourceFor(x.pilot, r.read, a)
			} else {
				in.Source = pl.fleet.sourceAhead(x.pilot, r.read, j)
			}
			x.files = append(x.files, in)
		}
	}
}

// cacheLimit is what the files of the pilot and of those that share with it
// may take together (section IV-D); 0 if it has no cache.
func (p *pilot) cacheLimit() int64 {
	if p.info.CacheDir == "" {
		return p.info.CacheSize
	}
	var sum int64
	for _, o := range p.host.pilots {
		if o.info.CacheDir != "" {
			sum += o.info.CacheSize
		}
	}
	return sum
}

// queuedReads are the versions that jobs will read which the pilot, or one that
// shares its cache, has not started yet, each with the turn of the first; and a
// turn that is later than all. What started jobs read is in use, and stays
// while it is.
func (p *pilot) queuedReads() (reads map[*version]uint64, turns uint64) {
	reads = make(map[*version]uint64)
	for _, o := range p.host.pilots {
		if o != p && (o.info.CacheDir == "" || p.info.CacheDir == "") {
			continue
		}
		for turn, a := range o.attempts {
			if a.started || a.told.ended {
				continue
			}
			for i := range a.job.requests {
				v := a.job.requests[i].read
				if first, ok := reads[v]; v != nil && (!ok || uint64(turn) < first) {
					reads[v] = uint64(turn)
				}
			}
		}
		turns = max(turns, uint64(len(o.attempts)))
	}
	return reads, turns
}
