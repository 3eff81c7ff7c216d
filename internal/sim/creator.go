package sim

import (
	"slices"

	"fairway/internal/dispatch"
)

// creator hands jobs to the TaskQueue, or to the batch system: all at the
// start, or, like the JobCreator of ProdAgent (paper 3, section IV), those
// whose inputs it finds when it looks.
type creator struct {
	run     *run
	submit  func([]dispatch.Job)
	missing []int            // by job: inputs that do not exist yet
	readers map[string][]int // jobs that wait for a file
	found   []int            // jobs whose inputs exist, not submitted
	left    int
	names   map[string]int // made when it is asked for
}

// submitBatch is the number of jobs in one submission.
const submitBatch = 10_000

func newCreator(r *run, submit func([]dispatch.Job)) *creator {
	return &creator{run: r, submit: submit, left: len(r.work.jobs)}
}

func (c *creator) begin() {
	all := make([]int, len(c.run.work.jobs))
	for i := range all {
		all[i] = i
	}
	if !c.run.exp.Creation.WhenData && c.run.exp.Submission != Direct {
		c.hand(all)
		return
	}
	there := map[string]bool{}
	for _, f := range c.run.work.files {
		there[f.lfn] = true
	}
	c.missing = make([]int, len(all))
	c.readers = map[string][]int{}
	for i, t := range c.run.work.jobs {
		for _, lfn := range t.job.Reads {
			if !there[lfn] {
				c.missing[i]++
				c.readers[lfn] = append(c.readers[lfn], i)
			}
		}
		if c.missing[i] == 0 {
			c.found = append(c.found, i)
		}
	}
	c.look()
}

// look submits what can run by now, and looks again later.
func (c *creator) look() {
	slices.Sort(c.found)
	found := c.found
	c.found = nil
	c.hand(found)
	if c.left > 0 {
		c.run.after(max(c.run.exp.Creation.Poll, 1), c.look)
	}
}

// visible says that a file can be read.
func (c *creator) visible(lfn string) {
	for _, i := range c.readers[lfn] {
		if c.missing[i]--; c.missing[i] == 0 {
			c.found = append(c.found, i)
		}
	}
	delete(c.readers, lfn)
}

func (c *creator) hand(jobs []int) {
	c.left -= len(jobs)
	for some := range slices.Chunk(jobs, submitBatch) {
		batch := make([]dispatch.Job, len(some))
		for k, i := range some {
			batch[k] = c.run.work.jobs[i].job
		}
		c.submit(batch)
	}
}

// byName finds a job of the workflow.
func (c *creator) byName(name string) (int, bool) {
	if c.names == nil {
		c.names = make(map[string]int, len(c.run.work.jobs))
		for i := range c.run.work.jobs {
			c.names[c.run.work.jobs[i].job.Name] = i
		}
	}
	i, known := c.names[name]
	return i, known
}
