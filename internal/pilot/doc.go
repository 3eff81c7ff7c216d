// Package pilot is the agent on a worker node (paper 3, section IV): it checks
// its environment, registers with the TaskQueue, pulls jobs, runs them in
// sandboxes beside a data cache, and reports.
//
// Guarantees:
//
//   - A result is reported until the TaskQueue has acknowledged it. While the
//     TaskQueue is away jobs go on, and their results are kept; after
//     Config.Lease without an answer everything is ended.
//   - An attempt is executed at most once by a pilot. Assignments, ends and
//     results may be lost, repeated or reordered on the way without harm.
//   - Jobs are started in the order in which they were assigned, as soon as
//     what they need is free. Later jobs do not
//     overtake a job that needs much.
//   - Ending a job ends all processes that it started, also those that have
//     left its process group or session. When the pilot is killed, the kernel
//     kills the commands that it started. The next pilot on the host that uses
//     the same sandbox folder kills the processes that those commands left behind.
//   - An output counts only once it is stored, durably, under a PFN that no
//     other attempt uses.
//   - The pilot reads a file directly if it does not fit into the cache.
//
// # The way of an attempt
//
//  1. exchange.go sends Syncs and carries out the answers: pilot.assign (queue.go)
//     takes an assignment, pilot.startFitting starts what fits, ahead.go prepares the
//     next ones meanwhile.
//  2. pilot.execute (execute.go) has package stage bring the inputs into a sandbox, and
//     runs the command there (command.go). Package process finds all of its processes, and
//     ends it at its limits.
//  3. pilot.deliver keeps its logs (logs.go) and has package stage store the outputs.
//  4. pilot.finish hands the result to package report, which has it sent until it is
//     acknowledged, and keeps it on disk while the TaskQueue is away.
//
// [Run] is called once per process: the pilot makes itself the reaper of the
// processes that jobs leave behind. All waits for processes, files and time go
// through package sched.
package pilot
