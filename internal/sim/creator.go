package sim

import (
	"slices"

	"fairway/internal/sim/experiment"
	"fairway/internal/taskqueue"
)

// creator hands jobs to the TaskQueue, or to the batch system: as soon as they
// are known, or, like the JobCreator of ProdAgent (paper 3, section IV), when
// it looks and finds their inputs.
type creator struct {
	run     *run
	submit  func([]taskqueue.Job)
	exist   func([]taskqueue.ExistingFile)
	there   map[string]bool  // files that exist; where it looks for them
	missing map[int]int      // by job: inputs that do not exist yet
	readers map[string][]int // jobs that wait for a file
	found   []int            // jobs whose inputs exist, not submitted
	left    int              // jobs that are known and not submitted
	looking bool             // it will look again
	names   map[string]int   // made when it is asked for
}

// submitBatch is the number of jobs in one submission.
const submitBatch = 10_000

func newCreator(r *run, submit func([]taskqueue.Job), exist func([]taskqueue.ExistingFile)) *creator {
	c := &creator{run: r, submit: submit, exist: exist}
	if r.exp.Creation.WhenData || r.exp.Submission == experiment.Direct {
		c.there, c.missing, c.readers = map[string]bool{}, map[int]int{}, map[string][]int{}
		for _, f := range r.work.files {
			c.there[f.lfn] = true
		}
	}
	return c
}

func (c *creator) begin() {
	if rules := c.run.work.rules; rules != nil {
		rules.begin()
		return
	}
	if submitted := c.run.work.submitted; submitted != nil {
		c.beginRecorded(submitted)
		return
	}
	all := make([]int, len(c.run.work.jobs))
	for i := range all {
		all[i] = i
	}
	c.add(nil, all)
}

// add takes files that have come into being outside, and then jobs that became
// known.
func (c *creator) add(files []taskqueue.ExistingFile, jobs []int) {
	if len(files) > 0 {
		c.exist(files)
	}
	for _, f := range files {
		c.visible(f.LFN)
	}
	c.left += len(jobs)
	if c.there == nil {
		c.hand(jobs)
		return
	}
	for _, i := range jobs {
		c.await(i)
	}
	if !c.looking {
		c.poll()
	}
}

// await lets a job wait for its inputs.
func (c *creator) await(i int) {
	for _, lfn := range c.run.work.jobs[i].job.Reads {
		if !c.there[lfn] {
			c.missing[i]++
			c.readers[lfn] = append(c.readers[lfn], i)
		}
	}
	if c.missing[i] == 0 {
		c.found = append(c.found, i)
	}
}

// poll submits what can run by now, and looks again later.
func (c *creator) poll() {
	slices.Sort(c.found)
	found := c.found
	c.found = nil
	c.hand(found)
	if c.looking = c.left > 0; c.looking {
		c.run.after(max(c.run.exp.Creation.Poll, 1), c.poll)
	}
}

// visible says that a file can be read.
func (c *creator) visible(lfn string) {
	if c.there == nil {
		return
	}
	c.there[lfn] = true
	for _, i := range c.readers[lfn] {
		if c.missing[i]--; c.missing[i] == 0 {
			delete(c.missing, i)
			c.found = append(c.found, i)
		}
	}
	delete(c.readers, lfn)
}

func (c *creator) hand(jobs []int) {
	c.left -= len(jobs)
	for some := range slices.Chunk(jobs, submitBatch) {
		batch := make([]taskqueue.Job, len(some))
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
	}
	for i := len(c.names); i < len(c.run.work.jobs); i++ {
		c.names[c.run.work.jobs[i].job.Name] = i
	}
	i, ok := c.names[name]
	return i, ok
}
