package dispatch

// Publications of one file go out one at a time, in the order of versions, so
// that its plain name never goes back, whatever is repeated after a crash.
// What is still to be published follows from the commits and from one record for
// each file: up to which version nothing is to be published any more.

// publish asks for a committed output to appear under its plain name, unless
// a later version was given out for that already.
func (fs *files) publish(j *job, v *version) {
	o := j.outputFor(v.file.lfn)
	if o == nil || !o.Publish || v.pfn == "" || v.publishing {
		return
	}
	if v.number < v.file.published {
		fs.overtaken(v.file)
		return
	}
	v.publishing = true
	if fs.publishing[v.file] == nil {
		fs.publishNext(v.file)
	}
}

// publishNext gives out the lowest version that waits for it.
func (fs *files) publishNext(f *file) {
	for _, v := range f.versions {
		if !v.publishing {
			continue
		}
		if v.number < f.published {
			fs.notPublishing(v)
			continue
		}
		f.published, fs.publishing[f] = v.number+1, v
		fs.effects.Publish = append(fs.effects.Publish, Publish{File: v.ref(), PFN: v.pfn, Size: v.size})
		return
	}
}

// overtaken is for a file of which a version was committed after a later one
// was given out. A Load before that is confirmed knows it from this record.
func (fs *files) overtaken(f *file) {
	if later := fs.publishing[f]; later != nil {
		fs.journal.persistPublished(FileRef{LFN: f.lfn, Version: later.number - 1})
	}
}

func (fs *files) notPublishing(v *version) {
	v.publishing = false
	fs.tryRemove(v)
}

func (fs *files) published(ref FileRef) {
	v := fs.version(ref)
	if v == nil || fs.publishing[v.file] != v {
		return
	}
	delete(fs.publishing, v.file)
	fs.journal.persistPublished(ref)
	fs.notPublishing(v)
	fs.publishNext(v.file)
}
