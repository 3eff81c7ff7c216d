package dispatch

import (
	"math"
	"strings"
)

// maxJobs bounds the jobs of one Core; the indexes hold JobIDs in 32 bits.
const maxJobs = math.MaxUint32 - 1

func (c *Core) submit(jobs []Job) error {
	if err := c.queue.checkJobs(jobs); err != nil {
		return err
	}
	reads := c.files.looked
	for i := range jobs {
		n := len(jobs[i].Reads)
		j := c.queue.newJob(&jobs[i], reads[:n])
		reads = reads[n:]
		c.journal.persistJob(j, &jobs[i])
		c.jobEvent(JobSubmitted, j, "")
		c.placement.letGoAll(c.queue.inheritPriority(j))
		c.files.startOut(j)
	}
	return nil
}

// checkJobs refuses what cannot be inserted. It leaves the names of the jobs
// in names, and the files that they read in looked.
func (q *queue) checkJobs(jobs []Job) error {
	if uint64(q.jobs.Len())+uint64(len(jobs)) > maxJobs {
		return refuse("dispatch: more than %d jobs", uint64(maxJobs))
	}
	q.files.looked = q.files.looked[:0]
	var written map[string]bool // by the jobs before; made when it is asked for
	for i := range jobs {
		j := &jobs[i]
		err := j.check()
		if err == nil {
			written, err = q.files.checkReads(jobs, i, written)
		}
		if err == nil {
			err = q.takeName(jobs, i)
		}
		if err != nil {
			q.forgetNames(jobs[:i])
			return err
		}
	}
	return nil
}

// takeName enters the name of a job that is to be inserted, unless another job
// has it, also one before it in the list.
func (q *queue) takeName(jobs []Job, i int) error {
	name, hash, first := jobs[i].Name, q.names.Hash(jobs[i].Name), q.jobs.Len()
	_, taken := q.names.Find(hash, func(id uint32) bool {
		if id >= first {
			return jobs[id-first].Name == name
		}
		return q.jobs.At(id).name == name
	})
	if taken {
		return refuse("dispatch: job name %s is used twice", name)
	}
	q.names.Add(hash, first+uint32(i))
	return nil
}

func (q *queue) forgetNames(jobs []Job) {
	for i := range jobs {
		q.names.Remove(q.names.Hash(jobs[i].Name), q.jobs.Len()+uint32(i))
	}
}

func (fs *files) checkReads(jobs []Job, i int, written map[string]bool) (map[string]bool, error) {
	for _, lfn := range jobs[i].Reads {
		f := fs.find(lfn)
		if f == nil || len(f.versions) == 0 {
			if written == nil {
				written = make(map[string]bool)
				addWritten(written, jobs[:i])
			}
			if !written[lfn] {
				return nil, refuse("dispatch: job %s reads %s, which neither exists nor is written by a job before it", jobs[i].Name, lfn)
			}
			f = fs.named(lfn)
		}
		fs.looked = append(fs.looked, f)
	}
	if written != nil {
		addWritten(written, jobs[i:i+1])
	}
	return written, nil
}

func addWritten(written map[string]bool, jobs []Job) {
	for i := range jobs {
		for _, w := range jobs[i].Writes {
			if !w.Pattern {
				written[w.LFN] = true
			}
		}
	}
}

func (j *Job) check() error {
	if j.Name == "" {
		return refuse("dispatch: a job of step %s has no name", j.Step)
	}
	if lfn := repeated(j.Reads, func(s string) string { return s }); lfn != "" {
		return refuse("dispatch: job %s reads %s twice", j.Name, lfn)
	}
	if lfn := repeated(j.Writes, func(o Output) string { return o.LFN }); lfn != "" {
		return refuse("dispatch: job %s writes %s twice", j.Name, lfn)
	}
	for _, lfn := range j.Reads {
		if lfn == "" {
			return refuse("dispatch: job %s reads a file without a name", j.Name)
		}
	}
	for _, w := range j.Writes {
		if w.LFN == "" {
			return refuse("dispatch: job %s writes a file without a name", j.Name)
		}
		if w.Pattern && !strings.Contains(w.LFN, "*") {
			return refuse("dispatch: job %s: pattern %s has no *", j.Name, w.LFN)
		}
	}
	n := j.Needs
	if n.MilliCPUs < 0 || n.Memory < 0 || n.Disk < 0 || n.Time < 0 {
		return refuse("dispatch: job %s needs a negative amount", j.Name)
	}
	if int(int32(j.Priority)) != j.Priority {
		return refuse("dispatch: job %s: priority %d is out of range", j.Name, j.Priority)
	}
	return nil
}

// repeated returns a name that occurs twice, or "". Most lists are short.
func repeated[T any](list []T, name func(T) string) string {
	if len(list) > few {
		seen := make(map[string]bool, len(list))
		for _, x := range list {
			if seen[name(x)] {
				return name(x)
			}
			seen[name(x)] = true
		}
		return ""
	}
	for i, x := range list {
		for _, y := range list[:i] {
			if name(x) == name(y) {
				return name(x)
			}
		}
	}
	return ""
}

// newJob makes the job and inserts all its requests at the tails.
func (q *queue) newJob(s *Job, reads []*file) *job {
	j := q.bareJob(s)
	j.submitted = q.now
	q.files.requestFiles(j, reads, tail(j.id))
	for i := range j.requests {
		q.files.insert(&j.requests[i])
	}
	return j
}

// bareJob makes the job without requests.
func (q *queue) bareJob(s *Job) *job {
	cl := q.classOf(s)
	id := q.jobs.Len()
	j := q.jobs.Add()
	j.id, j.name, j.step, j.payload, j.digest = JobID(id), s.Name, q.stepNamed(s.Step), s.Payload, s.Digest
	j.policy, j.asked, j.class, j.outputs = q.policyOf(s), cl, cl, s.Writes
	j.priority, j.effective, j.state = int32(s.Priority), int32(s.Priority), Waiting
	if len(s.Writes) == 1 {
		j.one[0] = s.Writes[0]
		j.outputs = j.one[:]
	}
	q.readyBit.Grow(id + 1)
	j.step.Jobs++
	j.step.add(j.state, 1)
	q.totals.Jobs++
	q.totals.add(j.state, 1)
	return j
}

// places says which versions the requests of a job get.
type places interface {
	read(i int, f *file) *version
	write(i int, f *file) *version
}

// tail gives the versions of a job that is submitted now. The version of a
// write on a pattern is the number of its job: so no two jobs make the same
// version of a file that is written through patterns, and caches that hold the
// file before it is committed hold it under its final version. A file that was
// written through a pattern goes on in this way, so that a pattern's job which
// is retried late still finds its place.
type tail JobID

func (t tail) read(_ int, f *file) *version { return f.last() }

func (t tail) write(_ int, f *file) *version {
	if f.pattern {
		return f.newVersion(Version(t))
	}
	if f.matched {
		return f.newVersion(max(f.next(), Version(t)))
	}
	return f.newVersion(f.next())
}

func (fs *files) allNamed(lfns []string) []*file {
	list := make([]*file, len(lfns))
	for i, lfn := range lfns {
		list[i] = fs.named(lfn)
	}
	return list
}

// requestFiles makes the requests of a job: first what it reads, in the order
// of Reads, then what it only writes.
func (fs *files) requestFiles(j *job, reads []*file, at places) {
	if n := len(reads) + len(j.outputs); n <= len(j.few) {
		j.requests = j.few[:0]
	} else {
		j.requests = fs.requestSlab.Take(n)[:0]
	}
	for i, f := range reads {
		v := at.read(i, f)
		v.pins++
		j.requests = append(j.requests, request{job: j, read: v, output: -1})
	}
	for i := range j.outputs {
		fs.requestWrite(j, i, at)
	}
	for i := range j.requests {
		j.requests[i].Owner = &j.requests[i]
	}
}

func (fs *files) requestWrite(j *job, i int, at places) {
	var f *file
	if w := &j.outputs[i]; w.Pattern {
		f = fs.pattern(w.LFN)
	} else {
		f = fs.named(w.LFN)
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
