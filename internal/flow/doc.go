// Package flow makes the jobs of a workflow, which package workflow has read: steps are rules
// that create a job as soon as the names of its files are known.
//
// The package is passive: no goroutine, no clock, no I/O, no random source.
// The caller steps one [Input] at a time and carries out the [Effects]; files
// of declared inputs are enumerated by the caller. A [Flow] is used by one
// goroutine at a time.
//
// # The way through the package
//
// A key of the file becomes a property of the jobs:
//
//  1. Package workflow reads it into a Step, and refuses what can be known to be wrong.
//  2. Flow.describe (job.go) copies what the keys of the step say into the taskqueue.Job:
//     needs, retry, tools, site, priority.
//
// A file becomes a job:
//
//  1. A name becomes known: a file of an input arrives (arrive.go), or a job that
//     writes it is created. Flow.deliver gives the file to the steps that take it:
//     each.go finds the combinations, merge.go the groups, split.go the parts.
//  2. Flow.hold (job.go) keeps the job back until the names of all its inputs are known.
//  3. Flow.create makes the job. Flow.fill says what dispatch and the pilot are told
//     of it, commandSource (command.go) which command runs. Flow.enlist makes the
//     names of its outputs known, which is 1 again for the steps after it.
//  4. Flow.enqueue (order.go) has users of a rewritten file wait for their turn.
//     Flow.submit lets the job out.
//  5. Flow.happened (committed.go) takes its commit, if further jobs depend on it.
//
// # The canonical order
//
// Each file of an input that arrives, and each input that closes, begins a
// wave. A job belongs to the latest wave among the files that it was created
// from and reads, those left out that are set aside (setAside); jobs without
// data belong to wave 0, and merges at the end of the data to the wave in which
// the last of their inputs closed. Jobs are ordered by wave, then by step (a
// step comes after those whose files it takes, and otherwise as listed), then
// by the earliest wave from which they follow, then by name, numbers in it
// counting as numbers. So all that follows from one input file comes before
// what follows from the next.
//
// A job is submitted as soon as its names are known and the writers of what it
// reads are submitted. Only jobs that use a rewritten file also wait for their
// turn: a reader until no writer of an earlier place can appear any more, a
// writer until no reader or writer can. Flow knows by step which jobs can still
// appear: the watermark of a step is the wave up to which all its jobs
// are known. Flow holds nothing else back.
//
// From this follows, for workflows without age-limited merges and for the same
// order of arrivals:
//
//   - the set of jobs, and all that each consists of, does not depend on the
//     order in which commits arrive, nor on where the run was loaded again;
//   - any two jobs of which one writes a file that the other uses are
//     submitted in the canonical order, writers of files that are set aside before
//     all their readers;
//   - all jobs that one Step submits are in that order, and so are all jobs
//     of a workflow whose names are known before (no outputs chosen
//     by content, no records to count, no merges by size).
//
// Merges by number and size take files in the canonical order of their names:
// by wave, by the earliest wave, then by name. A merge that is limited by age takes what exists when
// its oldest file is old enough; what it took is recorded, since nothing else
// determines it.
//
// # Values
//
// A file carries the values of the placeholders that it was made with, by an
// input's path or by a job, and a step that takes it gets these: flow
// reads nothing back from a name whose values are known. Flow refuses (a) a name
// that has two readings with different values, and (b) data of which no job makes
// anything, unless the workflow says may_be_empty. A Flow that refused something
// is never finished.
//
// # What is durable
//
// Records hold the events that jobs depend on: arrivals, closings, commits of
// jobs that choose names or sizes, age-limited merges. [Load] replays them.
// A record is written once and never changed.
package flow
