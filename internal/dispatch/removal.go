package dispatch

import "slices"

func (fs *files) remove(pfn string) {
	if fs.removing[pfn] {
		return
	}
	fs.removing[pfn] = true
	fs.journal.persistRemoval(pfn)
	fs.effects.Remove = append(fs.effects.Remove, pfn)
}

func (fs *files) removed(pfn string) {
	if fs.removing[pfn] {
		delete(fs.removing, pfn)
		fs.journal.forgetRemoval(pfn)
	}
}

// superseded looks whether the versions before a newly committed one, or that
// one itself if it comes late, may go.
func (fs *files) superseded(v *version) {
	i := slices.Index(v.file.versions, v)
	for k := i - 1; k >= 0; k-- {
		if older := v.file.versions[k]; older.committed() {
			fs.tryRemove(older)
			break
		}
	}
	if i < len(v.file.versions)-1 {
		fs.tryRemove(v)
	}
}

// tryRemove removes the stored copy of a version that was superseded and that
// no job reads any more. What existed before Fairway is never touched. A
// failed job counts as one that reads, as it may be retried.
func (fs *files) tryRemove(v *version) {
	if v.existing || v.pfn == "" || v.pins > 0 || v.publishing || v.state != present || v.file.newest() == v {
		return
	}
	fs.remove(v.pfn)
	v.pfn = ""
	if !v.hasCopy() {
		v.state = gone
	}
	fs.changeOutputs(v.writer)
}
