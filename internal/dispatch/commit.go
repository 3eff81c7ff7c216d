package dispatch

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

// How a job ends: with outputs, which become visible all at once and are published, or
// without. Either way its requests leave the FIFOs, and those that it kept waiting are listed
// in worklists.

// commit makes the job Done with these outputs, which are in the order of Writes. p is the
// pilot that has them, or nil. It is the only place where versions become visible for the
// first time.
func (c *Core) commit(j *job, outputs []output, p *pilot) []taskqueue.CommittedFile {
	fs := &c.files
	c.jobs.setState(j, taskqueue.Done)
	holders := c.holders(p, outputs)
	versions := make([]*version, 0, 8) // on the stack for most jobs
	visible := fs.fileSlab.Take(len(outputs))
	for i := range outputs {
		o := &outputs[i]
		v := fs.outputVersion(j, o)
		versions = append(versions, v)
		visible[i] = taskqueue.CommittedFile{File: v.ref(), Pattern: o.Pattern, PFN: o.PFN, Size: o.Size, Records: o.Records}
		v.store(o.PFN, o.Size)
		v.records, v.tag = o.Records, o.TagOf(j.committed)
		v.noteProof(o.Adler32, o.Written)
		fs.setHash(v, o.Hash, "")
		v.identity = j.identityOf(o.LFN)
		if !fs.makeVisible(v, p, holders) {
			c.wantForWaiters(v) // the only pilot that had it is gone
		}
	}
	for v := range j.writes {
		if v.file.pattern {
			v.state = present
		}
	}
	fs.leave(j)
	j.inputsHaveServed()
	j.countStored(outputs)
	c.journal.persistCommit(j, outputs)
	fs.enterResult(j)
	for _, v := range versions {
		fs.publish(j, v)
		fs.superseded(v)
	}
	fs.unpinAll(j)
	return visible
}

// enterResult notes that a job which is committed now has the result of its key, if there is one.
func (fs *files) enterResult(j *job) {
	r := fs.journal.results.Of(j.key)
	if r == nil || j.key == (identity{}) {
		return
	}
	r.Takers = append(r.Takers, j)
	fs.complete(r, j)
}

// inputsHaveServed is for a job that is done: what it has read was made to some purpose, and may be lost as often
// again.
func (j *job) inputsHaveServed() {
	for v := range j.inputs {
		if v.writer != nil && v.writer.fate != nil {
			v.writer.fate.regenerations = 0
		}
	}
}

// holders are the pilots that may have told of copies of these outputs: those of
// the host of the pilot that made them, or for a result of an earlier run that is
// in caches only, all.
func (c *Core) holders(p *pilot, outputs []output) []*pilot {
	switch {
	case p != nil && !p.left:
		return p.host.pilots
	case slices.ContainsFunc(outputs, func(o output) bool { return o.PFN == "" }):
		return c.fleet.inOrder()
	}
	return nil
}

func (fs *files) outputVersion(j *job, o *output) *version {
	if o.Pattern == "" {
		for v := range j.writes {
			if !v.file.pattern && v.file.lfn == o.LFN {
				return v
			}
		}
	}
	f := j.files().named(o.LFN)
	f.matched = true
	v := f.versionFor(taskqueue.Version(j.id.Number()))
	v.writer = j
	fs.matched[j.id] = append(fs.matched[j.id], v)
	return v
}

func (j *job) identityOf(lfn string) identity {
	if j.key != (identity{}) {
		return identityOf("output", string(j.key[:]), lfn)
	}
	return identityOf("attempt", strconv.FormatUint(uint64(j.committed), 10), lfn)
}

func identityOf(parts ...string) identity {
	var buffer [256]byte
	b := buffer[:0]
	for _, p := range parts {
		b = appendPart(b, p)
	}
	sum := sha256.Sum256(b)
	return identity(sum[:16])
}

// appendPart keeps "a","bc" apart from "ab","c".
func appendPart(b []byte, part string) []byte {
	n := len(part)
	b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	return append(b, part...)
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
			if size, ok := p.copies.other.Take(r); ok {
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

// await lists the job with the versions it reads for which absent holds, and
// reports whether there are any.
func (fs *files) await(j *job, absent func(*version) bool) bool {
	for v := range j.inputs {
		if absent(v) {
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
	for v := range j.inputs {
		fs.waiters[v] = slices.DeleteFunc(fs.waiters[v], func(w *job) bool { return w == j })
		if len(fs.waiters[v]) == 0 {
			delete(fs.waiters, v)
		}
	}
	j.absent = 0
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
		if mark, ok := fs.raisedTo[f]; ok && mark.request == r {
			if before := r.Prev(); before != nil {
				fs.raisedTo[f] = raised{before.Owner, mark.priority}
			} else {
				delete(fs.raisedTo, f)
			}
		}
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

// unpinAll is for a job that will not read its inputs any more.
func (fs *files) unpinAll(j *job) {
	for v := range j.inputs {
		if v.pins--; v.pins == 0 {
			v.ready, v.mostly = nil, [1]readyReader{}
			fs.tryRemove(v)
		}
	}
}

func (j *job) pinInputs() {
	for v := range j.inputs {
		v.pins++
	}
}

func (c *Core) cancel(ids []taskqueue.JobID) error {
	if err := c.jobs.known(ids); err != nil {
		return err
	}
	for _, id := range ids {
		j := c.jobs.find(id)
		if j.state == taskqueue.Done || j.state == taskqueue.Cancelled {
			continue
		}
		c.placement.unready(j)
		c.fleet.endAttempts(j)
		c.finish(j, taskqueue.Cancelled, "by a person")
	}
	return nil
}

// finish ends a job without outputs.
func (c *Core) finish(j *job, s taskqueue.State, reason string) {
	c.jobs.setState(j, s)
	c.files.withdraw(j)
	j.regenerating = false
	f := j.itsFate()
	f.End, f.Reason, f.backingOff = s, reason, false
	c.journal.persistFate(j)
	kind := taskqueue.JobFailed
	if s == taskqueue.Cancelled {
		kind = taskqueue.JobCancelled
	}
	c.jobEvent(kind, j, reason)
	if s == taskqueue.Failed {
		c.work.failed = append(c.work.failed, j)
	}
}

// withdraw ends the job's claims without outputs: its requests let pass, and
// the versions that it was to write become missing. What it reads stays
// pinned.
func (fs *files) withdraw(j *job) {
	fs.unawait(j)
	for i := range j.requests {
		r := &j.requests[i]
		if r.write == nil || !r.write.lose() {
			continue
		}
		// Its readers stand together in the FIFO: right behind r, or anywhere if r was
		// withdrawn before. Those that were withdrawn are listed with the version.
		n := r.Next()
		if !r.Queued() {
			n = r.file().fifo.Head()
			for n != nil && n.Owner.read != r.write {
				n = n.Next()
			}
		}
		for ; n != nil && n.Owner.read == r.write; n = n.Next() {
			fs.work.block = append(fs.work.block, n.Owner.job)
		}
		fs.work.block = append(fs.work.block, fs.waiters[r.write]...)
	}
	for _, v := range fs.matched[j.id] {
		if v.lose() {
			fs.work.block = append(fs.work.block, fs.waiters[v]...)
		}
	}
	if j.regenerating {
		for _, v := range fs.writtenBy(j) {
			if v.state == present && len(fs.waiters[v]) > 0 { // it is in caches elsewhere
				fs.cannotRegenerate(v)
			}
		}
	}
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

// cannotRegenerate blocks those who wait for the version.
func (fs *files) cannotRegenerate(v *version) {
	v.state = missing
	fs.work.block = append(fs.work.block, fs.waiters[v]...)
}

// Publications of one file go out one at a time, in the order of versions, so
// that its plain name never goes back, whatever is repeated after a crash.
// What is still to be published follows from the commits and from one record for
// each file: up to which version nothing is to be published any more.
//
// A version that is to be published waits (version.toPublish) until those before
// it are confirmed. Then it is given out: files.publishing names it until it is
// confirmed, and file.publishFrom says for good that nothing below it is given out
// any more. A version that is committed later than a higher one was given out is
// overtaken, and never published.

// publish asks for a committed output to appear under its plain name, unless
// a later version was given out for that already.
func (fs *files) publish(j *job, v *version) {
	o := j.outputFor(v.file.lfn)
	if o == nil || !o.Publish || v.pfn == "" || v.toPublish {
		return
	}
	if v.number < v.file.publishFrom {
		if later := fs.publishing[v.file]; later != nil {
			// A Load before the later one is confirmed must not publish this one.
			fs.journal.persistPublished(v.file, later.number-1)
		}
		return
	}
	v.toPublish = true
	if fs.publishing[v.file] == nil {
		fs.publishNext(v.file)
	}
}

// publishNext gives out the lowest version that waits for it.
func (fs *files) publishNext(f *file) {
	for _, v := range f.versions {
		if !v.toPublish {
			continue
		}
		if v.number < f.publishFrom {
			fs.endPublication(v)
			continue
		}
		f.publishFrom, fs.publishing[f] = v.number+1, v
		fs.effects.Publish = append(fs.effects.Publish, v.stored())
		return
	}
}

func (v *version) stored() taskqueue.StoredFile {
	return taskqueue.StoredFile{File: v.ref(), PFN: v.pfn, Size: v.size, Adler32: v.adler32(), Written: v.written()}
}

func (fs *files) endPublication(v *version) {
	v.toPublish = false
	fs.tryRemove(v)
}

func (fs *files) publicationConfirmed(ref taskqueue.FileRef) {
	v := fs.version(ref)
	if v == nil || fs.publishing[v.file] != v {
		return
	}
	delete(fs.publishing, v.file)
	fs.journal.persistPublished(v.file, v.number)
	fs.endPublication(v)
	fs.publishNext(v.file)
}

// superseded looks whether the versions before a newly committed one, or that
// one itself if it comes late or nobody reads it, may go.
func (fs *files) superseded(v *version) {
	i := slices.Index(v.file.versions, v)
	for k := i - 1; k >= 0; k-- {
		if older := v.file.versions[k]; older.committed() {
			fs.tryRemove(older)
			break
		}
	}
	fs.tryRemove(v)
}

// tryRemove removes the stored copy of a version that was superseded, or is temporary, and
// that no job reads any more. What existed before Fairway is never touched, and what others name
// stays with the result (isShared). Failed and cancelled jobs count as ones that read, as they may
// be retried.
func (fs *files) tryRemove(v *version) {
	wasRead := v.temporary() && v.readersKnown()
	if v.existing || v.pfn == "" || v.pins > 0 || v.toPublish || v.state != present || v.file.newest() == v && !wasRead {
		return
	}
	if fs.isShared(v) {
		return
	}
	fs.remove(v.pfn)
	fs.journal.results.Of(v.writer.key).Drop(v.pfn)
	if wasRead {
		r := v.writer.step.run
		r.removed++
		r.removedBytes += v.size
		fs.outdate(v.writer, v.pfn)
	} else {
		fs.changeOutputs(v.writer)
	}
	fs.notStored(v)
	if !v.hasCopy() {
		v.state = gone
	}
}

// outdated is what the record of a job's outputs names although it was removed. The outputs
// are recorded anew when that is half of what was stored, so that all records of a job with n
// outputs which go one by one take n log n. Until then the records of removal say that they
// go, also when they are gone.
type outdated struct {
	pfns []string
	half int
}

// outdate is for a stored output of a committed job that is being removed.
func (fs *files) outdate(j *job, pfn string) {
	o := fs.outdated[j]
	if o == nil {
		stored := 0
		for _, v := range fs.writtenBy(j) {
			if v.pfn != "" {
				stored++
			}
		}
		o = &outdated{half: stored / 2}
		fs.outdated[j] = o
	}
	o.pfns = append(o.pfns, pfn)
	fs.stillNamed[pfn] = true
	if len(o.pfns) >= o.half {
		fs.changeOutputs(j)
	}
}

// newest is the highest version that is committed: what the file holds now. Its
// stored copy goes only if it is temporary. A version that cannot be made again is passed
// over, since readers after it are blocked; for plain names see made.
func (f *file) newest() *version {
	for i := len(f.versions) - 1; i >= 0; i-- {
		if f.versions[i].committed() {
			return f.versions[i]
		}
	}
	return nil
}

func (fs *files) readersKnown(in taskqueue.ReadersKnown) error {
	r, err := fs.runs.get(in.Run)
	if err != nil {
		return err
	}
	for _, lfn := range in.LFNs {
		if f := r.files.Find(lfn); f != nil {
			f.allReaders = true
			fs.unread = append(fs.unread, f.versions...)
		}
	}
	return nil
}

// removeUnread looks whether versions may go that were listed as unread. Their runs may be
// retired.
func (fs *files) removeUnread() {
	list := fs.unread
	fs.unread = nil
	for _, v := range list {
		if fs.runs.byID[v.run] != nil {
			fs.tryRemove(v)
		}
	}
}

// temporary reports whether the stored copy of the version is for jobs of its run alone.
// What no job reads is a result, whatever its step says of storage.
func (v *version) temporary() bool {
	if v.writer == nil || !v.hasReader && !v.file.pattern {
		return false
	}
	o := v.writer.outputFor(v.file.lfn)
	return o != nil && o.Temporary
}

// readersKnown reports whether no job that is still to be submitted reads the version.
func (v *version) readersKnown() bool { return v.file.allReaders || v.writer.step.run.complete }

func (fs *files) remove(pfn string) {
	if fs.removing[pfn] {
		return
	}
	fs.removing[pfn] = true
	fs.journal.persist(records.TableRemove, 0, pfn, &records.Removal{})
	fs.effects.Remove = append(fs.effects.Remove, pfn)
}

func (fs *files) removed(pfn string) {
	if fs.removing[pfn] {
		delete(fs.removing, pfn)
		if !fs.stillNamed[pfn] {
			fs.journal.forget(records.TableRemove, 0, pfn)
		}
	}
}

// commitResult makes the outputs of an attempt visible, all at once. No other
// attempt of the job counts from here on.
func (c *Core) commitResult(by taskqueue.PilotID, p *pilot, j *job, r *taskqueue.Result) {
	before := j.class.inAll()
	c.nodeSucceeded(p, j)
	c.fleet.learn(p, j, &r.Usage)
	if j.class.key.time > 0 && j.class.inAll() < before {
		c.placement.offers++ // a pilot with an end that asked in vain may have the time now
	}
	c.placement.unready(j)
	c.files.unawait(j)
	c.fleet.endAttempts(j)
	if j.regenerating {
		c.commitRegenerated(p, j, r)
		return
	}
	c.dropCheckpoint(j)
	j.committed = r.Attempt
	files := c.commit(j, c.files.outputsOf(j, r), p)
	c.event(taskqueue.Event{Kind: taskqueue.JobCommitted, Job: j.id, Name: j.name, Step: j.step.Step, Pilot: by,
		Result: r, Files: files})
}

// outputsOf are the outputs of a successful attempt, in the order of Writes and
// by name within a pattern. They are valid until the next call.
func (fs *files) outputsOf(j *job, r *taskqueue.Result) []output {
	fs.outputs = fs.outputs[:0]
	for i := range r.Outputs {
		w := &r.Outputs[i]
		o := output{
			LFN: w.LFN, PFN: w.PFN, Size: w.Size, Records: w.Records, Adler32: w.Adler32, Written: w.Written, Hash: w.Hash,
		}
		noteWanted(&o, j.outputFor(w.LFN))
		fs.outputs = append(fs.outputs, o)
	}
	position := func(o output) int {
		return slices.IndexFunc(j.outputs, func(x taskqueue.Output) bool { return x.LFN == cmp.Or(o.Pattern, o.LFN) })
	}
	slices.SortFunc(fs.outputs, func(a, b output) int {
		return cmp.Or(cmp.Compare(position(a), position(b)), cmp.Compare(a.LFN, b.LFN))
	})
	return fs.outputs
}

// noteWanted notes what the job said of the output that it is.
func noteWanted(o *output, x *taskqueue.Output) {
	o.Cached = o.PFN == "" && x.Storage == taskqueue.StorageCache
	if x.Pattern {
		o.Pattern = x.LFN
	}
}

// commitRegenerated takes the outputs of a job that ran again: those that are gone
// get their copies back, the other new copies are not needed.
func (c *Core) commitRegenerated(p *pilot, j *job, r *taskqueue.Result) {
	var unneeded []string // PFNs
	holders := c.holders(p, c.files.outputsOf(j, r))
	find, taken := r.ByLFN(), make(map[string]bool, len(r.Outputs))
	for _, v := range c.files.writtenBy(j) {
		w := find(v.file.lfn)
		taken[w.LFN] = true
		if v.state == present && v.pfn != "" {
			unneeded = append(unneeded, w.PFN)
			c.files.arrived(v)
			continue
		}
		c.remade(v, w, taskqueue.Tag(r.Attempt))
		if !c.files.makeVisible(v, p, holders) {
			c.wantForWaiters(v)
		}
	}
	for i := range r.Outputs {
		if w := &r.Outputs[i]; !taken[w.LFN] {
			unneeded = append(unneeded, w.PFN)
		}
	}
	j.regenerating = false
	j.fate.cache = cacheID{}
	j.fate.remember(j.committed) // what it stored may still be in use
	j.committed = r.Attempt
	c.jobs.setState(j, taskqueue.Done)
	c.files.persistRegenerated(j)
	for _, v := range c.files.writtenBy(j) {
		if v.state == present {
			c.files.publish(j, v)
		}
		c.files.tryRemove(v) // the job ran again for another one, and nobody reads this one
	}
	for _, pfn := range unneeded {
		if pfn != "" {
			c.files.remove(pfn)
		}
	}
	c.event(taskqueue.Event{Kind: taskqueue.JobRegenerated, Job: j.id, Name: j.name, Step: j.step.Step, Result: r})
	c.files.unpinAll(j)
}

// remade is for a version that was made again. Its older copies were committed
// too: they stay readable where they are as long as there is no stored one.
func (c *Core) remade(v *version, w *taskqueue.WrittenFile, tag taskqueue.Tag) {
	for _, p := range slices.Clone(v.holders) {
		at := copyOf{p, v}
		if _, ok := c.files.older[at]; !ok {
			c.files.older[at] = olderCopy{v.tag, v.size}
		}
		if w.PFN != "" {
			c.files.setAside(at)
			c.dropCopy(p, v)
		}
	}
	if v.pfn == "" && w.PFN != "" {
		c.examineReaders(v) // those that are ready wait for hosts that hold it, and need not any more
	}
	v.store(w.PFN, w.Size)
	v.records, v.tag = w.Records, tag
	v.noteProof(w.Adler32, w.Written)
	c.files.setHash(v, w.Hash, "")
}

// persistRegenerated is for a job that was committed and has run again.
func (fs *files) persistRegenerated(j *job) {
	fs.persistOutputs(j)
	if j.inJournal() {
		fs.journal.persistCommit(j, nil)
	}
	if j.fate != nil {
		fs.journal.persistFate(j)
	}
}

// wantForWaiters is for a version that was made, and of which no copy can be had:
// those who wait for it would wait for a job that is done.
func (c *Core) wantForWaiters(v *version) {
	if waiting := c.files.waiters[v]; len(waiting) > 0 {
		c.files.wantVersion(v, c.fleet.itsCache(waiting[0]))
	}
}
