package dispatch

import (
	"slices"

	"fairway/internal/fifo"
)

// request is a job's place in the FIFO of one location. A job that reads and
// writes one file has one request, a write.
type request struct {
	fifo.Request[*request]
	job    *job
	read   *version // nil if the job only writes
	write  *version // nil if it only reads
	output int32    // index into outputs
	access Access   // to what it reads
}

// streams reports whether the attempt reads the file from where it is stored, so that
// nothing is to be moved before it begins.
func (r *request) streams() bool { return r.access == AccessStream && r.read.pfn != "" }

func (r *request) file() *file {
	if r.read != nil {
		return r.read.file
	}
	return r.write.file
}

// numbering says which versions the requests of a job get.
type numbering interface {
	read(i int, f *file) *version
	write(i int, f *file) *version
}

// tail gives the versions of a job that is submitted now. The version of a
// write on a pattern is the number of its job: so no two jobs make the same
// version of a file that is written through patterns, and caches that hold the
// file before it is committed hold it under its final version. A file that was
// written through a pattern goes on in this way, so that a pattern's job which
// is retried late still finds its place.
type tail uint32

func (t tail) read(_ int, f *file) *version { return f.last() }

func (t tail) write(_ int, f *file) *version {
	if f.pattern {
		return f.newVersion(Version(t))
	}
	if f.matched {
		return f.newVersion(max(f.next(), Version(t)))
	}
	return f.newVersion(f.next())
}

// files are those of the job's run.
func (j *job) files() *namespace { return &j.step.run.files }

// requestFiles makes the requests of a job: first what it reads, in the order
// of Reads, each with its access, then what it only writes.
func (fs *files) requestFiles(j *job, reads []*file, access []Access, at numbering) {
	if n := len(reads) + len(j.outputs); n <= len(j.few) {
		j.requests = j.few[:0]
	} else {
		j.requests = fs.requestSlab.Take(n)[:0]
	}
	for i, f := range reads {
		v := at.read(i, f)
		v.pins++
		r := request{job: j, read: v, output: -1}
		if access != nil {
			r.access = access[i]
		}
		j.requests = append(j.requests, r)
	}
	for i := range j.outputs {
		fs.requestWrite(j, i, at)
	}
	for i := range j.requests {
		j.requests[i].Owner = &j.requests[i]
	}
}

func (fs *files) requestWrite(j *job, i int, at numbering) {
	var f *file
	if w := &j.outputs[i]; w.Pattern {
		f = j.files().pattern(w.LFN)
	} else {
		f = j.files().named(w.LFN)
	}
	v := at.write(i, f)
	v.writer = j
	for k := range j.requests {
		if r := &j.requests[k]; r.read != nil && r.read.file == f {
			r.write, r.output = v, int32(i)
			return
		}
	}
	j.requests = append(j.requests, request{job: j, write: v, output: int32(i)})
}

func (fs *files) insert(r *request) {
	mode := fifo.Read
	if r.write != nil {
		mode = fifo.Write
	}
	if !r.file().fifo.Insert(&r.Request, mode) {
		r.job.ungranted++
	}
}

// startOut lists a job to be looked at, if none of its requests waits.
func (fs *files) startOut(j *job) {
	if j.readsMissing() {
		fs.work.block = append(fs.work.block, j)
	} else if j.ungranted == 0 {
		fs.work.examine = append(fs.work.examine, j)
	}
}

// commit makes outputs of a job visible, all at once, and records that. It is
// the only place where versions become visible for the first time. The pilot by,
// which may be nil, made them; holders may have told of copies before.
//
// It returns the visible files, and the versions of which there is no copy, as
// the only pilot that had them is gone.
func (fs *files) commit(j *job, outputs []output, by *pilot, holders []*pilot) (visible []CommittedFile, absent []*version) {
	versions := make([]*version, 0, 8) // on the stack for most jobs
	visible = fs.fileSlab.Take(len(outputs))
	for i := range outputs {
		o := &outputs[i]
		v := fs.outputVersion(j, o)
		versions = append(versions, v)
		visible[i] = CommittedFile{File: v.ref(), Pattern: o.Pattern, PFN: o.PFN, Size: o.Size, Records: o.Records}
		v.size, v.records, v.adler, v.pfn, v.tag = o.Size, o.Records, o.Adler32, o.PFN, o.tag(j.committed)
		v.identity = j.identityOf(o.LFN)
		if !fs.makeVisible(v, by, holders) {
			absent = append(absent, v)
		}
	}
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && v.file.pattern {
			v.state = present
		}
	}
	fs.leave(j)
	fs.journal.persistCommit(j, outputs)
	for _, v := range versions {
		fs.publish(j, v)
		fs.superseded(v)
	}
	fs.unpinAll(j)
	return visible, absent
}

func (fs *files) outputVersion(j *job, o *output) *version {
	if o.Pattern == "" {
		for i := range j.requests {
			if v := j.requests[i].write; v != nil && !v.file.pattern && v.file.lfn == o.LFN {
				return v
			}
		}
	}
	f := j.files().named(o.LFN)
	f.matched = true
	v := f.versionFor(Version(j.id.Number()))
	v.writer = j
	fs.matched[j.id] = append(fs.matched[j.id], v)
	return v
}

func (j *job) identityOf(lfn string) identity {
	if j.key != (identity{}) {
		return identityOf("output", string(j.key[:]), lfn)
	}
	return identityOf("attempt", attemptKey(j.committed), lfn)
}

// makeVisible is for a version whose record is set: it counts the copies that
// pilots have told of before, and lists who waits for it. It reports whether
// there is a copy.
func (fs *files) makeVisible(v *version, by *pilot, holders []*pilot) bool {
	v.state = present
	live := by != nil && !by.left
	if live || v.pfn == "" {
		r := v.copyNamed(v.tag)
		for _, p := range holders {
			if size, ok := p.other[r]; ok {
				delete(p.other, r)
				fs.hold(p, v, size)
			}
		}
	}
	if v.pfn == "" {
		if live {
			fs.hold(by, v, v.size)
		}
		if !v.hasCopy() {
			v.state = gone
			return false
		}
	}
	fs.arrived(v)
	return true
}

// arrived tells those who wait for the version that it can be had.
func (fs *files) arrived(v *version) {
	for _, j := range fs.waiters[v] {
		j.absent--
		if j.absent == 0 {
			fs.work.examine = append(fs.work.examine, j)
		}
	}
	delete(fs.waiters, v)
}

// leave takes the job's requests out of the FIFOs and lets pass who stood
// behind them.
func (fs *files) leave(j *job) {
	for i := range j.requests {
		r := &j.requests[i]
		if !r.Queued() {
			continue
		}
		f := r.file()
		fs.lowerMark(f, r)
		for n := f.fifo.Cancel(&r.Request); n != nil; n = n.NextGranted() {
			behind := n.Owner.job
			behind.ungranted--
			if behind.ungranted == 0 {
				fs.work.examine = append(fs.work.examine, behind)
			}
		}
	}
	j.ungranted = 0
}

// lowerMark is for a request that leaves its FIFO.
func (fs *files) lowerMark(f *file, r *request) {
	mark, ok := fs.raisedTo[f]
	switch p := r.Prev(); {
	case !ok || mark.request != r:
	case p == nil:
		delete(fs.raisedTo, f)
	default:
		fs.raisedTo[f] = raised{p.Owner, mark.priority}
	}
}

func (j *job) pinInputs() {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil {
			v.pins++
		}
	}
}

// unpinAll is for a job that will not read its inputs any more.
func (fs *files) unpinAll(j *job) {
	for i := range j.requests {
		v := j.requests[i].read
		if v == nil {
			continue
		}
		if v.pins--; v.pins == 0 {
			v.ready, v.mostly = nil, [1]readyReader{}
			fs.tryRemove(v)
		}
	}
}

// await lists the job with the versions it reads for which absent holds, and
// reports whether there are any.
func (fs *files) await(j *job, absent func(*version) bool) bool {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && absent(v) {
			fs.waiters[v] = append(fs.waiters[v], j)
			j.absent++
		}
	}
	return j.absent > 0
}

// unawait forgets what await listed.
func (fs *files) unawait(j *job) {
	if j.absent == 0 {
		return
	}
	for i := range j.requests {
		v := j.requests[i].read
		if v == nil {
			continue
		}
		fs.waiters[v] = slices.DeleteFunc(fs.waiters[v], func(w *job) bool { return w == j })
		if len(fs.waiters[v]) == 0 {
			delete(fs.waiters, v)
		}
	}
	j.absent = 0
}

func (j *job) readsMissing() bool { return j.missingInput() != nil }

func (j *job) missingInput() *version {
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && v.state == missing {
			return v
		}
	}
	return nil
}

// withdraw ends the job's claims without outputs: its requests let pass, and
// the versions that it was to write become missing. What it reads stays
// pinned.
func (fs *files) withdraw(j *job) {
	fs.unawait(j)
	for i := range j.requests {
		r := &j.requests[i]
		if v := r.write; v != nil && v.lose() {
			fs.blockReaders(r)
		}
	}
	for _, v := range fs.matched[j.id] {
		if v.lose() {
			fs.work.block = append(fs.work.block, fs.waiters[v]...)
		}
	}
	fs.loseScattered(j)
	fs.leave(j)
	j.itsFate().Withdrawn = true
}

// lose makes a version missing unless it can be had, and reports whether it
// did.
func (v *version) lose() bool {
	if v.state == present || v.state == missing {
		return false
	}
	v.state = missing
	return true
}

// blockReaders lists the readers of a version that will not come. Those in the
// FIFO stand together. Those that were withdrawn are listed with the version.
func (fs *files) blockReaders(r *request) {
	v := r.write
	for n := r.firstReader(); n != nil && n.Owner.read == v; n = n.Next() {
		fs.work.block = append(fs.work.block, n.Owner.job)
	}
	fs.work.block = append(fs.work.block, fs.waiters[v]...)
}

// firstReader is the first request that reads what r writes: it stands right
// behind r, or anywhere if r was withdrawn before.
func (r *request) firstReader() *fifo.Request[*request] {
	if r.Queued() {
		return r.Next()
	}
	n := r.file().fifo.Head()
	for n != nil && n.Owner.read != r.write {
		n = n.Next()
	}
	return n
}

// loseScattered is for a job that was to make again, at a place where they
// are needed, versions that are in caches elsewhere.
func (fs *files) loseScattered(j *job) {
	if !j.regenerating {
		return
	}
	for _, v := range fs.writtenBy(j) {
		if v.state == present && len(fs.waiters[v]) > 0 {
			fs.cannotRegenerate(v)
		}
	}
}

// cannotRegenerate blocks those who wait for the version.
func (fs *files) cannotRegenerate(v *version) {
	v.state = missing
	fs.work.block = append(fs.work.block, fs.waiters[v]...)
}

// revive makes a job that had ended without outputs live again. Its requests
// do not return to the FIFOs: what it reads is pinned and what it writes has
// its number, so the order is kept by the versions.
func (fs *files) revive(j *job) {
	fs.unawait(j)
	for i := range j.requests {
		if v := j.requests[i].write; v != nil && v.regain() {
			fs.work.unblock = append(fs.work.unblock, fs.waiters[v]...)
		}
	}
	for _, v := range fs.matched[j.id] {
		if v.regain() {
			fs.work.unblock = append(fs.work.unblock, fs.waiters[v]...)
		}
	}
}

// regain undoes lose.
func (v *version) regain() bool {
	if v.state != missing {
		return false
	}
	v.state = pending
	if v.identity != (identity{}) {
		v.state = gone
		if v.hasCopy() {
			v.state = present
		}
	}
	return true
}

// A version whose every copy is gone stays known. When a job needs it that
// cannot be reused, the job that made it runs again, and before it, if need
// be, those that made its inputs. The version stays the same.

// wanting is a version that is to be made again, at a place if that is given.
type wanting struct {
	version  *version
	at       place
	byPerson bool // a person asked for it
}

func (fs *files) wantVersion(v *version, at place) {
	if !v.wanted {
		v.wanted = true
		fs.work.wanted = append(fs.work.wanted, wanting{version: v, at: at})
	}
}

// wantOwed has the lost results of a job made again.
func (fs *files) wantOwed(j *job) {
	if !j.publishes() {
		return
	}
	for _, v := range fs.writtenBy(j) {
		if v.owed() {
			fs.wantVersion(v, place{})
		}
	}
}

// awaited reports whether some job waits for an output of this one, or it owes a result.
func (fs *files) awaited(j *job) bool {
	return slices.ContainsFunc(fs.writtenBy(j), func(v *version) bool { return len(fs.waiters[v]) > 0 || v.owed() })
}
