package dispatch

// Publications of one file go out one at a time, in the order of versions, so
// that its plain name never goes back, whatever is repeated after a crash.
// What is still to be published follows from the commits and from one record for
// each file: up to which version nothing is to be published any more.

// publish asks for a committed output to appear under its plain name, unless
// a later version was given out for that already.
func (c *Core) publish(j *job, v *version) {
	o := j.outputFor(v.file.lfn)
	if o == nil || !o.Publish || v.pfn == "" || v.publishing {
		return
	}
	if v.number < v.file.published {
		c.overtaken(v.file)
		return
	}
	v.publishing = true
	if c.publishing[v.file] == nil {
		c.publishNext(v.file)
	}
}

// publishNext gives out the lowest version that waits for it.
func (c *Core) publishNext(f *file) {
	for _, v := range f.versions {
		if !v.publishing {
			continue
		}
		if v.number < f.published {
			c.notPublishing(v)
			continue
		}
		f.published, c.publishing[f] = v.number+1, v
		c.effects.Publish = append(c.effects.Publish, Publish{File: v.ref(), PFN: v.pfn, Size: v.size})
		return
	}
}

// overtaken is for a file of which a version was committed after a later one
// was given out. A Load before that is confirmed knows it from this record.
func (c *Core) overtaken(f *file) {
	if later := c.publishing[f]; later != nil {
		c.journal.persistPublished(FileRef{LFN: f.lfn, Version: later.number - 1})
	}
}

func (c *Core) notPublishing(v *version) {
	v.publishing = false
	c.tryRemove(v)
}

func (c *Core) published(ref FileRef) {
	v := c.versionOf(ref)
	if v == nil || c.publishing[v.file] != v {
		return
	}
	delete(c.publishing, v.file)
	c.journal.persistPublished(ref)
	c.notPublishing(v)
	c.publishNext(v.file)
}
