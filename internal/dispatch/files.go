package dispatch

import (
	"slices"

	"fairway/internal/dispatch/records"
	"fairway/internal/dispatch/rows"
	"fairway/internal/logical"
	"fairway/internal/taskqueue"
	"fairway/lib/fifo"
)

// files are all locations with their versions: who reads and writes which
// version, where its copies are, what is published, and what is removed.
//
// Invariants:
//   - The numbers of the versions of a file ascend in the order in which jobs
//     were submitted, and a version that was committed never changes.
//   - A reader is given no copy but one whose tag is that of the version, or
//     that of an older commit which older names for it.
//   - A physical file is either named by a version, or by a result of the
//     journal, or is on removing, or nobody has told of it yet. A record may still
//     name one that is removed, while there is a record of its removal.
//
// Files know jobs as owners of requests and as writers, and never change their
// state: what a change means for jobs goes into the worklists of the transition.
type files struct {
	*transition
	journal *journal
	runs    *runs

	matched map[taskqueue.JobID][]*version // what jobs wrote through patterns

	// Who waits. A job stands in waiters under each version that it lacks
	// although its request is granted or withdrawn; job.absent counts them. The
	// FIFOs hold all others.
	waiters  map[*version][]*job
	deferred []wanting        // versions to be made again when the grace after a restart is over
	unread   []*version       // that may have lost their last reader; looked at when that grace is over
	raisedTo map[*file]raised // up to which request priorities were raised; see raised

	// Copies and plain names. What few files have stands here, not in file.
	hashes     map[*version]string            // that copies must have (knownHash.sum); a version without one is in no cache for other hosts
	tellers    map[*version]taskqueue.PilotID // of hashes of outputs that are not in their commits (knownHash.by)
	older      map[copyOf]olderCopy           // copies that are readable under another tag than their version's
	publishing map[*file]*version             // given out to be published, and not confirmed
	removing   map[string]bool                // PFNs to be removed, until they are; durable
	outdated   map[*job]*outdated             // committed, with stored outputs in their records that were removed
	stillNamed map[string]bool                // the PFNs of all outdated; their records of removal are kept
	saves      map[taskqueue.Tag]bool         // of the checkpoints that jobs go on from

	requestSlab rows.Slab[request]
	fileSlab    rows.Slab[taskqueue.CommittedFile]
	outputs     []output // of a commit; here for its memory
	readFiles   []*file  // by the check of a submission: the files that the jobs read
}

func newFiles(s *transition, jn *journal, rs *runs) files {
	return files{
		transition: s, journal: jn, runs: rs, matched: make(map[taskqueue.JobID][]*version),
		waiters: make(map[*version][]*job), raisedTo: make(map[*file]raised),
		hashes: make(map[*version]string), tellers: make(map[*version]taskqueue.PilotID),
		older: make(map[copyOf]olderCopy), publishing: make(map[*file]*version), removing: make(map[string]bool),
		outdated: make(map[*job]*outdated), stillNamed: make(map[string]bool),
		saves: make(map[taskqueue.Tag]bool),
	}
}

// namespace is the files of a run: two runs may use one LFN for different files.
type namespace struct {
	rows.Named[file]
	run      taskqueue.RunID
	patterns map[string]*file // the locations of patterns
}

// file is a location: a logical file, or a pattern as a location of its own. It
// takes four lines of the processor's cache, and what is needed together stands
// together: with a million jobs in memory every line counts. What few files have
// stands in maps of files.
//
// A file lives as long as its run, and stands in the namespace of that. Only files change
// it.
type file struct {
	lfn      string
	fifo     fifo.Queue[*request] // of jobs that have not left it
	versions []*version           // ascending

	first       [1]*version
	publishFrom taskqueue.Version // lowest that may still be given out to be published; see publish
	pattern     bool
	matched     bool    // has been written through a pattern
	allReaders  bool    // no job that is still to be submitted reads it; not durable
	own         version // most files have one version; its run is that of the file
}

// newVersion adds a version at the end.
func (f *file) newVersion(n taskqueue.Version) *version {
	v := &f.own
	if len(f.versions) == 0 && v.file == nil {
		f.versions = f.first[:0]
	} else {
		v = new(version)
	}
	v.file, v.number, v.run = f, n, f.own.run
	f.versions = append(f.versions, v)
	return v
}

// next is the number of the version that the next write makes. Version 0 is
// what existed before the first writer.
func (f *file) next() taskqueue.Version {
	if last := f.last(); last != nil {
		return last.number + 1
	}
	return 1
}

func (f *file) last() *version {
	if len(f.versions) == 0 {
		return nil
	}
	return f.versions[len(f.versions)-1]
}

func (f *file) version(n taskqueue.Version) *version {
	i, ok := slices.BinarySearchFunc(f.versions, n, func(v *version, n taskqueue.Version) int {
		return int(int64(v.number) - int64(n))
	})
	if !ok {
		return nil
	}
	return f.versions[i]
}

// versionFor returns the version of this number, made if need be.
func (f *file) versionFor(n taskqueue.Version) *version {
	if v := f.version(n); v != nil {
		return v
	}
	v := f.newVersion(n)
	for i := len(f.versions) - 1; i > 0 && f.versions[i-1].number > n; i-- {
		f.versions[i-1], f.versions[i] = f.versions[i], f.versions[i-1]
	}
	return v
}

type versionState uint8

// The states of a version. What they mean depends on the writer too:
//
//	state    writer                what is going on
//	pending  live                  it is being made for the first time
//	present  Done, or none         it can be read
//	present  live, regenerating    it is in caches only, and made again for fate.cache
//	gone     Done, not wanted      nobody needs it
//	gone     Done, wanted          listed to be made again: in worklists.wanted, or in
//	                               files.deferred until the grace after a restart is over
//	gone     live, regenerating    it is being made again
//	missing  Failed, Cancelled or  it was never made, if its identity is zero; else it
//	         Blocked, or Done      cannot be made again, unless a copy turns up
//
// Jobs in files.waiters of a version lack it: Waiting ones wait until it is
// present (or made again where they must run), Blocked ones until it is no
// longer missing. Only an owed version is made again without a waiter.
const (
	pending versionState = iota // its writer has not ended
	present                     // committed, and to be had
	gone                        // committed, but every copy was lost or removed
	missing                     // it will not come, as things are
)

// version is one state of a file. Its contents never change once committed, but
// its copies may come and go. It lives as long as its file.
type version struct {
	number    taskqueue.Version
	pins      int32 // jobs that may still read it, failed and cancelled ones included
	state     versionState
	existing  bool // was there before: neither removed nor made again
	wanted    bool // listed to be made again, which has not begun
	announced bool // all its holders have it among their hot versions
	toPublish bool // given out to be published, or waiting for its turn
	hasReader bool // a job that reads it was submitted
	timed     bool // proof is of a time, and not of contents
	compared  bool // identity tells what it holds, so that who reads it can compare that
	file      *file
	size      int64
	identity  identity // zero until it is committed for the first time

	// The ready jobs that read it, by group; see jobs.index. A group that nobody
	// looked at may have entries left that are ready no more.
	ready  []readyReader
	mostly [1]readyReader // what ready holds while they are of one group
	tag    taskqueue.Tag  // of its copies, but for those in files.older

	// Its copies: one that is stored, and those in caches of pilots. A version is
	// present exactly while it has one (hasCopy), except that of a pattern.
	pfn     string // empty: in caches only
	writer  *job   // nil: existing
	holders []*pilot
	records int64
	proof   uint32 // adler32 or, where it is timed, written
	run     taskqueue.RunID
}

func (v *version) ref() taskqueue.FileRef {
	return taskqueue.FileRef{Run: v.run, LFN: v.file.lfn, Version: v.number}
}
func (v *version) committed() bool { return v.state == present || v.state == gone }
func (v *version) hasCopy() bool   { return v.pfn != "" || len(v.holders) > 0 }

// copyNamed is the name of a copy of the version that bears a tag.
func (v *version) copyNamed(t taskqueue.Tag) taskqueue.FileRef {
	return taskqueue.FileRef{LFN: v.file.lfn, Version: v.number, Tag: t}
}

// named returns the file of that name, made if need be.
func (n *namespace) named(lfn string) *file {
	f := n.Get(lfn)
	if f.own.run == 0 {
		f.own.run = n.run
	}
	return f
}

// few is up to how many elements a search through all of them is faster than a
// map.
const few = 16

// pattern returns the location of a pattern, made if need be.
func (n *namespace) pattern(p string) *file {
	f := n.patterns[p]
	if f == nil {
		f = &file{lfn: p, pattern: true}
		f.own.run = n.run
		n.patterns[p] = f
	}
	return f
}

func (n *namespace) version(lfn string, number taskqueue.Version) *version {
	if f := n.Find(lfn); f != nil {
		return f.version(number)
	}
	return nil
}

func (fs *files) version(r taskqueue.FileRef) *version {
	if run := fs.runs.byID[r.Run]; run != nil {
		return run.files.version(r.LFN, r.Version)
	}
	return nil
}

// all yields the files of all runs.
func (fs *files) all(yield func(*file) bool) {
	for _, r := range fs.runs.inOrder {
		for f := range r.files.All {
			if !yield(f) {
				return
			}
		}
	}
}

// writtenBy returns the versions of files that the job has made or is to make.
func (fs *files) writtenBy(j *job) []*version {
	list := make([]*version, 0, len(j.outputs))
	for v := range j.writes {
		if !v.file.pattern {
			list = append(list, v)
		}
	}
	return append(list, fs.matched[j.id]...)
}

func (fs *files) addFiles(in taskqueue.AddFiles) error {
	r, err := fs.runs.get(in.Run)
	if err != nil {
		return err
	}
	if err := checkExisting(in.Files); err != nil {
		return err
	}
	for i := range in.Files {
		fs.addFile(r, &in.Files[i])
	}
	return nil
}

func checkExisting(files []taskqueue.ExistingFile) error {
	for i := range files {
		if files[i].LFN == "" {
			return refuse("dispatch: existing file %d has no LFN", i)
		}
		if files[i].PFN == "" {
			return refuse("dispatch: existing file %s has no PFN", files[i].LFN)
		}
	}
	return nil
}

// addFile makes a version of its own; the readers inserted from now on get it. A
// version that the file has already may be found elsewhere from now on.
func (fs *files) addFile(r *run, e *taskqueue.ExistingFile) {
	f := r.files.named(e.LFN)
	if v := f.existingAs(e); v != nil {
		v.pfn, v.tag = e.PFN, e.Tag
		fs.journal.persistExisting(v, e.Identity)
		return
	}
	n := taskqueue.Version(0)
	if len(f.versions) > 0 {
		n = f.next()
	}
	v := f.newVersion(n)
	v.existing, v.state, v.size, v.pfn, v.tag = true, present, e.Size, e.PFN, e.Tag
	v.identity, v.compared = logical.Known(e.LFN, e.Identity), logical.TellsContents(e.Identity)
	fs.journal.persistExisting(v, e.Identity)
	fs.superseded(v)
}

// existingAs is the version that existed before and has the same contents; nil
// where there is none, or where that is not known.
func (f *file) existingAs(e *taskqueue.ExistingFile) *version {
	id := logical.Known(e.LFN, e.Identity)
	for _, v := range f.versions {
		if e.Identity != "" && v.existing && v.identity == id && v.size == e.Size {
			return v
		}
	}
	return nil
}

// identity stands for the content of a version.
type identity = records.Identity

// request is a job's place in the FIFO of one location. A job that reads and
// writes one file has one request, a write.
type request struct {
	fifo.Request[*request]
	job    *job
	read   *version         // nil if the job only writes
	write  *version         // nil if it only reads
	output int32            // index into outputs
	access taskqueue.Access // to what it reads
}

// streams reports whether the attempt reads the file from where it is stored, so that
// nothing is to be moved before it begins.
func (r *request) streams() bool { return r.access == taskqueue.AccessStream && r.read.pfn != "" }

// staged reports whether the file is read whole before the job begins.
func (r *request) staged() bool { return r.read != nil && !r.streams() }

func (r *request) file() *file {
	if r.read != nil {
		return r.read.file
	}
	return r.write.file
}

func (j *job) readsMissing() bool { return j.missingInput() != nil }

func (j *job) missingInput() *version {
	for v := range j.inputs {
		if v.state == missing {
			return v
		}
	}
	return nil
}
