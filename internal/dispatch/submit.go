package dispatch

import (
	"math"
	"slices"

	"fairway/internal/taskqueue"
	"fairway/lib/fifo"
)

// maxJobs bounds the jobs that one Core takes until it is loaded again; the indexes hold
// their rows in 32 bits.
const maxJobs = math.MaxUint32 - 1

func (c *Core) submit(in taskqueue.Submit) error {
	r, err := c.checkSubmit(&in)
	if err != nil {
		return err
	}
	for i := range in.Files {
		c.files.addFile(r, &in.Files[i])
	}
	c.effects.Persist = slices.Grow(c.effects.Persist, len(in.Jobs))
	c.effects.Events = slices.Grow(c.effects.Events, 2*len(in.Jobs)) // most are ready at once
	reads := c.files.readFiles
	for i := range in.Jobs {
		s := r.owned(in.Jobs[i])
		n := len(s.Reads)
		j := c.jobs.newJob(r, &s)
		j.text.submitted = c.now
		c.files.requestFiles(j, reads[:n], s.Access, tail(j.id.Number()))
		for k := range j.requests {
			c.files.insert(&j.requests[k])
		}
		reads = reads[n:]
		c.journal.persistJob(j, &s)
		c.jobEvent(taskqueue.JobSubmitted, j, "")
		c.placement.letGo(c.jobs.inheritPriority(j)...)
		c.files.enlist(j)
	}
	return nil
}

// Refuses tells why Step would refuse a submission now, as an error that wraps [taskqueue.ErrRefused]; nil if
// it would not. So a caller that submits the jobs in pieces knows before that all will be taken.
func (c *Core) Refuses(in taskqueue.Submit) error {
	r, err := c.checkSubmit(&in)
	if err == nil {
		r.forgetNames(in.Jobs)
	}
	return err
}

func (c *Core) checkSubmit(in *taskqueue.Submit) (*run, error) {
	r, err := c.runs.get(in.Run)
	if err == nil {
		err = checkExisting(in.Files)
	}
	if err == nil {
		err = c.jobs.checkJobs(r, in.Files, in.Jobs)
	}
	return r, err
}

// checkJobs refuses what cannot be inserted when the files are known. It leaves the names of the
// jobs in names, and the files that they read in files.readFiles.
func (js *jobs) checkJobs(r *run, files []taskqueue.ExistingFile, jobs []taskqueue.Job) error {
	if uint64(js.table.Len())+uint64(len(jobs)) > maxJobs {
		return refuse("dispatch: more than %d jobs", uint64(maxJobs))
	}
	if err := js.checkClasses(r, jobs); err != nil {
		return err
	}
	js.files.readFiles = js.files.readFiles[:0]
	var written map[string]bool // files, and what jobs before write; made when it is asked for
	if len(files) > 0 {
		written = make(map[string]bool, len(files))
	}
	for i := range files {
		written[files[i].LFN] = true
	}
	for i := range jobs {
		if err := js.checkJob(r, jobs, i, &written); err != nil {
			r.forgetNames(jobs[:i])
			return err
		}
	}
	return nil
}

// forgetNames takes the names of jobs that were checked out of names again.
func (r *run) forgetNames(jobs []taskqueue.Job) {
	for i := range jobs {
		r.names.Remove(r.names.Hash(jobs[i].Name), r.jobs+1+uint32(i))
	}
}

func (js *jobs) checkJob(r *run, jobs []taskqueue.Job, i int, written *map[string]bool) error {
	j := &jobs[i]
	if err := j.Check(); err != nil {
		return err
	}
	for _, lfn := range j.Reads {
		f := r.files.Find(lfn)
		if f == nil || len(f.versions) == 0 {
			if *written == nil {
				*written = make(map[string]bool)
				addWritten(*written, jobs[:i])
			}
			if !(*written)[lfn] {
				return refuse("dispatch: job %s reads %s, which neither exists nor is written by a job before it", j.Name, lfn)
			}
			f = r.files.named(lfn)
		}
		js.files.readFiles = append(js.files.readFiles, f)
		if j.Tasks > 1 && staysInCaches(f, lfn, jobs[:i]) {
			return refuse("dispatch: job %s has several tasks and reads %s, which stays in caches only: store it", j.Name, lfn)
		}
	}
	if *written != nil {
		addWritten(*written, jobs[i:i+1])
	}
	hash, first := r.names.Hash(j.Name), r.jobs+1
	if _, ok := r.names.Find(hash, func(number uint32) bool {
		if number >= first {
			return jobs[number-first].Name == j.Name
		}
		return js.table.At(r.row(number)).name == j.Name
	}); ok {
		return refuse("dispatch: job name %s is used twice", j.Name)
	}
	r.names.Add(hash, first+uint32(i))
	return nil
}

// staysInCaches reports whether the last version of a file, which one of the jobs may write that
// are submitted with its reader, is not stored.
func staysInCaches(f *file, lfn string, jobs []taskqueue.Job) bool {
	for i := range slices.Backward(jobs) {
		for _, w := range jobs[i].Writes {
			if w.LFN == lfn {
				return w.Storage == taskqueue.StorageCache
			}
		}
	}
	if len(f.versions) == 0 || f.last().writer == nil {
		return false
	}
	o := f.last().writer.outputFor(lfn)
	return o != nil && o.Storage == taskqueue.StorageCache
}

func addWritten(written map[string]bool, jobs []taskqueue.Job) {
	for i := range jobs {
		for _, w := range jobs[i].Writes {
			if !w.Pattern {
				written[w.LFN] = true
			}
		}
	}
}

// owned is a job with those texts in the run's own memory that stay as long as that: of what comes
// in one message each would keep a piece of memory alive.
func (r *run) owned(s taskqueue.Job) taskqueue.Job {
	s.Name, s.Digest, s.Payload = r.texts.String(s.Name), r.texts.String(s.Digest), r.texts.Bytes(s.Payload)
	for i := range s.Writes {
		s.Writes[i].LFN = r.texts.String(s.Writes[i].LFN)
	}
	return s
}

// newJob makes the next job of a run, without requests. It keeps the texts of s.
func (js *jobs) newJob(r *run, s *taskqueue.Job) *job {
	cl := js.classOf(r, s)
	row := js.table.Len()
	j := js.table.Add()
	r.jobs++
	if n := len(r.spans); n == 0 || r.spans[n-1].row+r.jobs-r.spans[n-1].number != row {
		r.spans = append(r.spans, span{r.jobs, row})
	}
	j.row, j.id = row, taskqueue.NewJobID(r.ID, r.jobs)
	j.name, j.step, j.text.payload, j.text.digest = s.Name, r.steps[s.Step], s.Payload, s.Digest
	if j.step == nil {
		j.step = &step{StepTotals: taskqueue.StepTotals{Step: s.Step}, run: r}
		r.steps[s.Step] = j.step
		r.stepOrder = append(r.stepOrder, j.step)
	}
	j.asSubmitted(cl)
	j.needsNow(cl)
	j.policy, j.outputs = js.policyOf(s), s.Writes
	j.priority, j.state = int32(s.Priority), taskqueue.Waiting
	j.effective = j.ownPriority()
	if len(s.Writes) == 1 {
		j.text.one[0] = s.Writes[0]
		j.outputs = j.text.one[:]
	}
	js.readyBit.Grow(row + 1)
	for _, t := range j.counted(js) {
		t.Jobs++
		t.ByState[taskqueue.Waiting]++
	}
	return j
}

// numbering says which versions the requests of a job get.
type numbering interface {
	read(i int, f *file) *version
	write(i int, f *file) *version
}

// tail gives the versions of a job that is submitted now. The version of a
// write on a pattern is the number of its job: so no two jobs make the same
// version of a file that is written through patterns, and caches that hold the
// file before it is committed hold it under its final version. A file that was
// written through a pattern goes on in this way, so that a pattern's job which
// is retried late still finds its place.
type tail uint32

func (t tail) read(_ int, f *file) *version { return f.last() }

func (t tail) write(_ int, f *file) *version {
	if f.pattern {
		return f.newVersion(taskqueue.Version(t))
	}
	if f.matched {
		return f.newVersion(max(f.next(), taskqueue.Version(t)))
	}
	return f.newVersion(f.next())
}

// files are those of the job's run.
func (j *job) files() *namespace { return &j.step.run.files }

// requestFiles makes the requests of a job: first what it reads, in the order
// of Reads, each with its access, then what it only writes.
func (fs *files) requestFiles(j *job, reads []*file, access []taskqueue.Access, at numbering) {
	if n := len(reads) + len(j.outputs); n > 0 {
		j.requests = fs.requestSlab.Take(n)[:0]
	}
	for i, f := range reads {
		v := at.read(i, f)
		v.pins++
		v.hasReader = true
		r := request{job: j, read: v, output: -1}
		if access != nil {
			r.access = access[i]
		}
		j.requests = append(j.requests, r)
	}
	for i := range j.outputs {
		fs.requestWrite(j, i, at)
	}
	for i := range j.requests {
		j.requests[i].Owner = &j.requests[i]
	}
}

func (fs *files) requestWrite(j *job, i int, at numbering) {
	var f *file
	if w := &j.outputs[i]; w.Pattern {
		f = j.files().pattern(w.LFN)
	} else {
		f = j.files().named(w.LFN)
	}
	v := at.write(i, f)
	v.writer = j
	for k := range j.requests {
		if r := &j.requests[k]; r.read != nil && r.read.file == f {
			r.write, r.output = v, int32(i)
			return
		}
	}
	j.requests = append(j.requests, request{job: j, write: v, output: int32(i)})
}

func (fs *files) insert(r *request) {
	mode := fifo.Read
	if r.write != nil {
		mode = fifo.Write
	}
	if !r.file().fifo.Insert(&r.Request, mode) {
		r.job.ungranted++
	}
}

// enlist lists a job to be looked at, if none of its requests waits.
func (fs *files) enlist(j *job) {
	if j.readsMissing() {
		fs.work.block = append(fs.work.block, j)
	} else if j.ungranted == 0 {
		fs.work.examine = append(fs.work.examine, j)
	}
}
