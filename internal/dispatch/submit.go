package dispatch

import (
	"math"
	"strings"
)

// maxJobs bounds the jobs of one Core; the indexes hold JobIDs in 32 bits.
const maxJobs = math.MaxUint32 - 1

func (c *Core) submit(jobs []Job) error {
	if err := c.checkJobs(jobs); err != nil {
		return err
	}
	for i := range jobs {
		j := c.newJob(&jobs[i])
		c.persistJob(j, &jobs[i])
		c.jobEvent(JobSubmitted, j, "")
		c.inheritPriority(j)
		c.startOut(j)
	}
	return nil
}

func (c *Core) checkJobs(jobs []Job) error {
	if uint64(len(c.jobs)+len(jobs)) > maxJobs {
		return refuse("dispatch: more than %d jobs", uint64(maxJobs))
	}
	names := make(map[string]bool, len(jobs))
	written := make(map[string]bool, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		if err := j.check(); err != nil {
			return err
		}
		if _, taken := c.names[j.Name]; taken || names[j.Name] {
			return refuse("dispatch: job name %s is used twice", j.Name)
		}
		names[j.Name] = true
		for _, lfn := range j.Reads {
			if f := c.files[lfn]; !written[lfn] && (f == nil || len(f.versions) == 0) {
				return refuse("dispatch: job %s reads %s, which neither exists nor is written by a job before it", j.Name, lfn)
			}
		}
		for _, w := range j.Writes {
			if !w.Pattern {
				written[w.LFN] = true
			}
		}
	}
	return nil
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
	if len(list) > 16 {
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
func (c *Core) newJob(s *Job) *job {
	j := c.bareJob(s)
	j.submitted = c.now
	c.requestFiles(j, s.Reads, tail{c, j.id})
	for i := range j.requests {
		c.insert(&j.requests[i])
	}
	return j
}

// bareJob makes the job without requests.
func (c *Core) bareJob(s *Job) *job {
	cl := c.classOf(s)
	j := &job{
		id: JobID(len(c.jobs)), name: s.Name, step: c.stepNamed(s.Step), payload: s.Payload,
		digest: s.Digest, policy: c.policyOf(s), asked: cl, class: cl, outputs: s.Writes,
		priority: int32(s.Priority), effective: int32(s.Priority), state: Waiting,
	}
	c.jobs = append(c.jobs, j)
	c.names[j.name] = j.id
	c.readyBit.grow(len(c.jobs))
	j.step.Jobs++
	j.step.add(j.state, 1)
	c.totals.Jobs++
	c.totals.add(j.state, 1)
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
// file before it is committed hold it under its final version.
type tail struct {
	c   *Core
	job JobID
}

func (t tail) read(_ int, f *file) *version { return f.last() }

func (t tail) write(_ int, f *file) *version {
	v := &version{file: f, number: f.next()}
	if f.pattern {
		v.number = Version(t.job)
	}
	f.versions = append(f.versions, v)
	return v
}

// requestFiles makes the requests of a job: first what it reads, in the order
// of Reads, then what it only writes.
func (c *Core) requestFiles(j *job, reads []string, at places) {
	j.requests = make([]request, 0, len(reads)+len(j.outputs))
	for i, lfn := range reads {
		v := at.read(i, c.fileNamed(lfn))
		v.pins++
		j.requests = append(j.requests, request{job: j, read: v, output: -1})
	}
	for i := range j.outputs {
		c.requestWrite(j, i, at)
	}
	for i := range j.requests {
		j.requests[i].Owner = &j.requests[i]
	}
}

func (c *Core) requestWrite(j *job, i int, at places) {
	var f *file
	if w := &j.outputs[i]; w.Pattern {
		f = c.patternNamed(w.LFN)
	} else {
		f = c.fileNamed(w.LFN)
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
