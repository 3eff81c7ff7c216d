package dispatch

import (
	"iter"
	"slices"

	"fairway/internal/taskqueue"
)

// VersionView is where the copies of a version are, and which jobs make and read it.
type VersionView struct {
	FileView
	State      string   // pending, present, gone or missing: as for dispatch itself
	Newest     bool     // it is what the file holds now
	Lost       bool     // its stored file was lost
	CachesOnly bool     // its writer does not have it stored
	Hosts      []string // of the pilots that have it in their caches, sorted
	MadeBy     JobRef   // the zero value if it existed before

	// Readers are jobs that read it and have not ended, at most maxExplained: first those
	// in the file's FIFO, in its order, then those that have left it, in none.
	// ReadersLeft counts all of them.
	Readers     []JobRef
	ReadersLeft int
}

// JobRef names a job, and says how it stands.
type JobRef struct {
	ID    JobID
	Name  string
	State State
}

func (j *job) ref() JobRef { return JobRef{j.id, j.name, j.state} }

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
func (c *Core) History(run taskqueue.RunID, lfn string) ([]VersionView, bool) {
	r := c.runs.byID[run]
	if r == nil {
		return nil, false
	}
	f := r.files.Find(lfn)
	if f == nil || len(f.versions) == 0 {
		return nil, false
	}
	versions := make([]VersionView, len(f.versions))
	at := make(map[*version]*VersionView, len(f.versions))
	newest := f.newest()
	for i, v := range f.versions {
		versions[i] = v.history()
		versions[i].Newest = v == newest
		at[v] = &versions[i]
	}
	for q := f.fifo.Head(); q != nil; q = q.Next() {
		if view := at[q.Owner.read]; view != nil {
			view.readBy(q.Owner.job)
		}
	}
	for _, v := range f.versions {
		for _, j := range c.files.waiters[v] {
			if !j.queuedFor(v) {
				at[v].readBy(j)
			}
		}
	}
	return versions, true
}

var versionStates = [...]string{pending: "pending", present: "present", gone: "gone", missing: "missing"}

func (v *version) history() VersionView {
	view := VersionView{FileView: v.view(), State: versionStates[v.state], Lost: v.state == gone && v.tag == lostTag}
	if j := v.writer; j != nil {
		view.MadeBy = j.ref()
		o := j.outputFor(v.file.lfn)
		view.Publish = o != nil && o.Publish
		view.CachesOnly = o != nil && o.Storage != StorageElement
	}
	for _, p := range v.holders {
		view.Hosts = append(view.Hosts, p.info.Host)
	}
	slices.Sort(view.Hosts)
	view.Hosts = slices.Compact(view.Hosts)
	return view
}

func (view *VersionView) readBy(j *job) {
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
