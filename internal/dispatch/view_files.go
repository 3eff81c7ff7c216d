package dispatch

import (
	"iter"
	"slices"

	"fairway/internal/taskqueue"
)

func (j *job) ref() taskqueue.JobRef { return taskqueue.JobRef{ID: j.id, Name: j.name, State: j.state} }

// Files yields the names of the files of a run in the order in which they were first
// named. Patterns are none of them. The Core must not be stepped meanwhile.
func (c *Core) Files(run taskqueue.RunID) iter.Seq[string] {
	return func(yield func(string) bool) {
		r := c.runs.byID[run]
		if r == nil {
			return
		}
		for f := range r.files.All {
			if len(f.versions) > 0 && !yield(f.lfn) {
				return
			}
		}
	}
}

// History returns the known versions of a file of a run, ascending; false if there are none.
func (c *Core) History(run taskqueue.RunID, lfn string) ([]taskqueue.VersionView, bool) {
	r := c.runs.byID[run]
	if r == nil {
		return nil, false
	}
	f := r.files.Find(lfn)
	if f == nil || len(f.versions) == 0 {
		return nil, false
	}
	versions := make([]taskqueue.VersionView, len(f.versions))
	at := make(map[*version]*taskqueue.VersionView, len(f.versions))
	newest := f.newest()
	for i, v := range f.versions {
		versions[i] = v.history()
		versions[i].Newest = v == newest
		at[v] = &versions[i]
	}
	for q := f.fifo.Head(); q != nil; q = q.Next() {
		if view := at[q.Owner.read]; view != nil {
			addReader(view, q.Owner.job)
		}
	}
	for _, v := range f.versions {
		for _, j := range c.files.waiters[v] {
			if !j.queuedFor(v) {
				addReader(at[v], j)
			}
		}
	}
	return versions, true
}

var versionStates = [...]string{pending: "pending", present: "present", gone: "gone", missing: "missing"}

func (v *version) history() taskqueue.VersionView {
	view := taskqueue.VersionView{FileView: v.view(), State: versionStates[v.state], Lost: v.state == gone &&
		v.tag == lostTag}
	if j := v.writer; j != nil {
		view.MadeBy = j.ref()
		o := j.outputFor(v.file.lfn)
		view.Publish = o != nil && o.Publish
		view.CachesOnly = o != nil && o.Storage != taskqueue.StorageElement
	}
	for _, p := range v.holders {
		view.Hosts = append(view.Hosts, p.info.Host)
	}
	slices.Sort(view.Hosts)
	view.Hosts = slices.Compact(view.Hosts)
	return view
}

func addReader(view *taskqueue.VersionView, j *job) {
	if len(view.Readers) < maxExplained {
		view.Readers = append(view.Readers, j.ref())
	}
	view.ReadersLeft++
}

// queuedFor reports whether a request of the job that reads the version stands in the
// file's FIFO.
func (j *job) queuedFor(v *version) bool {
	return slices.ContainsFunc(j.requests, func(r request) bool { return r.read == v && r.Queued() })
}
