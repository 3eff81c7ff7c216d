package dispatch

import "slices"

// A stored file that is not there, or holds other bytes than were stored, counts as
// lost from when it is told, with all copies of it: who wrote to it may have written to
// them too. Its version stays, and is made again like one that was in caches only: when
// a job needs it, and at once if it is a result that is to stand under its plain name.

// lostTag is the tag of a version that was lost. No copy bears it.
const lostTag Tag = 2

// loseFiles takes note of stored files that are lost. What is not stored any more
// under the name that is told is known already.
func (c *Core) loseFiles(files []LostFile) {
	c.files.loseResults(files)
	for i := range files {
		c.loseFile(&files[i])
	}
}

func (c *Core) loseFile(l *LostFile) {
	v := c.files.version(l.File)
	if v == nil || v.writer == nil || v.pfn == "" || v.pfn != l.PFN || v.state != present {
		return
	}
	c.files.remove(v.pfn)
	v.pfn = ""
	for _, p := range slices.Clone(v.holders) {
		copied, size := c.files.copyAt(p, v), v.size
		c.dropCopy(p, v)
		p.other[copied] = size
	}
	v.tag = lostTag
	if v.state == present {
		c.lostLastCopy(v)
	}
	j := v.writer
	c.files.changeOutputs(j)
	c.event(Event{Kind: FileLost, Job: j.id, Name: j.name, Step: j.step.Step, Reason: v.file.lfn + ": " + l.Why})
	c.files.unpublish(v)
	if v.owed() {
		c.files.wantVersion(v, place{})
	}
}

// unpublish has a lost version published again when it has been made again, unless a
// later one was.
func (fs *files) unpublish(v *version) {
	f := v.file
	under := fs.publishing[f] == v
	if v.publishing = false; under {
		delete(fs.publishing, f)
	}
	if v.owed() {
		f.published = min(f.published, v.number)
		fs.journal.persistPublished(FileRef{LFN: f.lfn, Version: v.number - 1})
	}
	if under {
		fs.publishNext(f)
	}
}

// owed says of a version whether it is to stand under its plain name, and was lost.
func (v *version) owed() bool {
	if v.state != gone || v.writer == nil || v.file.made() != v {
		return false
	}
	o := v.writer.outputFor(v.file.lfn)
	return o != nil && o.Publish && o.Storage == StorageElement
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

func (j *job) publishes() bool {
	return slices.ContainsFunc(j.outputs, func(o Output) bool { return o.Publish && o.Storage == StorageElement })
}

// lostOutputs are the outputs of a job that is done which were stored, are the last
// versions of their files, and were lost.
func (fs *files) lostOutputs(j *job) []*version {
	if j.state != Done {
		return nil
	}
	return slices.DeleteFunc(fs.writtenBy(j), func(v *version) bool {
		return v.state != gone || v.tag != lostTag || v.file.made() != v
	})
}

// HasLost says whether a job is done and lacks outputs that were stored and were lost.
func (c *Core) HasLost(id JobID) bool {
	j := c.queue.find(id)
	return j != nil && len(c.files.lostOutputs(j)) > 0
}

// loseResults is for results of earlier runs: what they have lost is made again when
// it is needed.
func (fs *files) loseResults(files []LostFile) {
	lost := make(map[string]bool, len(files))
	for i := range files {
		lost[files[i].PFN] = true
	}
	for _, key := range fs.journal.resultKeys() {
		r := fs.journal.results[key]
		if !slices.ContainsFunc(r.outputs, func(o output) bool { return lost[o.PFN] }) {
			continue
		}
		r.outputs = slices.Clone(r.outputs)
		for i := range r.outputs {
			if o := &r.outputs[i]; lost[o.PFN] {
				fs.remove(o.PFN)
				o.PFN, o.Tag = "", lostTag
			}
		}
		fs.journal.results[key] = r
		fs.journal.persistStored(key, &r)
	}
}

// Stored yields the stored files that this run needs, or may need: those that unfinished
// jobs read, the results that are to stand under their plain names, and all of earlier
// runs that it may take. Files that existed before are none of them. The Core must not
// be stepped meanwhile.
func (c *Core) Stored(yield func(StoredFile) bool) {
	for f := range c.files.table.All {
		newest := f.newest()
		for _, v := range f.versions {
			if v.writer == nil || v.pfn == "" || v.state != present {
				continue
			}
			o := v.writer.outputFor(f.lfn)
			if v.pins == 0 && (v != newest || o == nil || !o.Publish) {
				continue
			}
			if !yield(StoredFile{File: v.ref(), PFN: v.pfn, Size: v.size}) {
				return
			}
		}
	}
	for _, key := range c.journal.resultKeys() {
		for _, o := range c.journal.results[key].outputs {
			if o.PFN != "" && !yield(StoredFile{File: FileRef{LFN: o.LFN}, PFN: o.PFN, Size: o.Size}) {
				return
			}
		}
	}
}

// StoredFile is a version as it is stored.
type StoredFile struct {
	File FileRef
	PFN  string
	Size int64
}

// StoredBy returns the outputs of a job as they are stored.
func (c *Core) StoredBy(id JobID) []StoredFile {
	j := c.queue.find(id)
	if j == nil {
		return nil
	}
	var list []StoredFile
	for _, v := range c.files.writtenBy(j) {
		if v.state == present && v.pfn != "" {
			list = append(list, StoredFile{File: v.ref(), PFN: v.pfn, Size: v.size})
		}
	}
	return list
}
