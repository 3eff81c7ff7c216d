package dispatch

import "fairway/internal/dispatch/rows"

// queue is all jobs by number and by name, and which of them are ready.
//
// Invariants:
//   - The number of a job is its place in the order of submission, for ever.
//   - A job is in the indexes exactly while it is Ready: then its bit in readyBit
//     is set, job.group is the group of its class and effective priority, and the
//     versions that it reads list it.
//   - A job has at least the priority of every job that waits for it.
//   - totals and those of the steps count every job once, under its state.
//
// The queue changes states and counts them. What becomes of the pilot that a
// job was kept for is told by those who take a job out.
type queue struct {
	*step
	files *files

	// All jobs, and what many of them share. Nothing is ever taken out.
	jobs      rows.Table[job] // by JobID; none has 0
	names     rows.Names
	policies  map[policyKey]*policy
	steps     map[string]*StepTotals
	stepOrder []*StepTotals // in the order of their first job
	totals    Totals

	// Requirement classes: what a pilot is compared with. None is ever taken out.
	classes map[classKey]*class
	byIndex []*class
	bound   map[place][]*class // those of jobs that must run at a place

	// The ready jobs.
	levels   []*level // that have any, by priority, highest first
	readyBit rows.Set
	ready    int
	changed  bool // jobs became ready or ceased to be since pilots were planned
	unequal  bool // jobs differ in priority; until then nothing is inherited
}

func newQueue(s *step, fs *files) queue {
	q := queue{
		step: s, files: fs, names: rows.NewNames(), policies: make(map[policyKey]*policy),
		steps: make(map[string]*StepTotals), classes: make(map[classKey]*class), bound: make(map[place][]*class),
	}
	q.jobs.Add() // that has no ID
	return q
}
