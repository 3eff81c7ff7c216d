package dispatch

// publish asks for a committed output to appear under its plain name, unless
// a later version was asked for already. That it is still to be done follows
// from the commit and from what was Published, so it needs no record.
func (c *Core) publish(j *job, v *version) {
	if o := j.outputFor(v.file.lfn); o == nil || !o.Publish || v.pfn == "" {
		return
	}
	if v.number < v.file.published || v.publishing {
		return
	}
	v.file.published = v.number + 1
	v.publishing = true
	c.effects.Publish = append(c.effects.Publish, Publish{File: v.ref(), PFN: v.pfn, Size: v.size})
}

func (c *Core) published(ref FileRef) {
	v := c.versionOf(ref)
	if v == nil || !v.publishing {
		return
	}
	v.publishing = false
	c.persistPublished(ref)
	c.tryRemove(v)
}
