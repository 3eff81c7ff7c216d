// Package flow turns workflow files into jobs: steps are rules that create a
// job as soon as the names of its files are known. It also reads and writes
// recorded runs (WfFormat).
//
// The package is passive: no goroutine, no clock, no I/O, no random source.
// The caller steps one [Input] at a time and carries out the [Effects]; files
// of declared inputs are enumerated by the caller. A [Flow] is used by one
// goroutine at a time.
//
// # The canonical order
//
// Each file of an input that arrives, and each input that closes, begins a
// wave. A job belongs to the latest wave among the files that it was created
// from and reads; jobs without data belong to wave 0, and merges at the end of
// the data to the wave in which the last of their inputs closed. Jobs are
// ordered by wave, then by step (a step comes after those whose files it
// takes, and otherwise as listed), then by name, numbers in it counting as
// numbers. So all that follows from one input file comes before what follows
// from the next.
//
// A job is submitted as soon as its names are known and the writers of what it
// reads are submitted. Only jobs that use a rewritten file also wait for their
// turn: a reader until no writer of an earlier place can appear any more, a
// writer until no reader or writer can. Flow knows by step which jobs can still
// appear: a step is settled up to a wave when all its jobs of that wave and
// before are known. Flow holds nothing else back.
//
// From this follows, for workflows without age-limited merges and for the same
// order of arrivals:
//
//   - the set of jobs, and all that each consists of, does not depend on the
//     order in which commits arrive, nor on where the run was loaded again;
//   - any two jobs of which one writes a file that the other uses are
//     submitted in the canonical order;
//   - all jobs that one Step submits are in the canonical order, and so are
//     all jobs of a workflow whose names are known before (no outputs chosen
//     by content, no records to count, no merges by size).
//
// Merges by number and size take files in the canonical order of their names:
// by wave, then by name. A merge that is limited by age takes what exists when
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
