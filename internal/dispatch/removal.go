package dispatch

import "slices"

// removals are the physical files that are to be removed, until they are.
// They are durable, and few at a time; the caller removes in the background.
type removals struct{ waiting map[string]bool }

func newRemovals() removals { return removals{waiting: make(map[string]bool)} }

func (c *Core) remove(pfn string) {
	if c.removing.waiting[pfn] {
		return
	}
	c.removing.waiting[pfn] = true
	c.journal.persistRemoval(pfn)
	c.effects.Remove = append(c.effects.Remove, pfn)
}

func (c *Core) removed(pfn string) {
	if c.removing.waiting[pfn] {
		delete(c.removing.waiting, pfn)
		c.journal.forgetRemoval(pfn)
	}
}

// superseded looks whether the versions before a newly committed one, or that
// one itself if it comes late, may go.
func (c *Core) superseded(v *version) {
	i := slices.Index(v.file.versions, v)
	for k := i - 1; k >= 0; k-- {
		if older := v.file.versions[k]; older.committed() {
			c.tryRemove(older)
			break
		}
	}
	if i < len(v.file.versions)-1 {
		c.tryRemove(v)
	}
}

// tryRemove removes the stored copy of a version that was superseded and that
// no job reads any more. What existed before Fairway is never touched. A
// failed job counts as one that reads, as it may be retried.
func (c *Core) tryRemove(v *version) {
	if v.existing || v.pfn == "" || v.pins > 0 || v.publishing || v.state != present || v.file.newest() == v {
		return
	}
	c.remove(v.pfn)
	v.pfn = ""
	if !v.hasCopy() {
		v.state = gone
	}
	c.changeOutputs(v.writer)
}
