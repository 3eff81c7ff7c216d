// Package loop owns the cores of runs: one of dispatch, and one of flow for each run. One
// goroutine (Loop.Run) takes requests, which are all that changes a run. For each it steps
// dispatch, feeds the events to flow, gives the jobs that flow creates to dispatch, until both
// rest. The records of
// all requests that came meanwhile go to the store in one transaction; while the disk
// works the loop steps further requests.
//
// The loop lets out the effects of a transaction only when it is durable: answers to
// pilots and people, publications, removals, pilots. So nothing is acknowledged that
// a crash could take back. Only questions (Inbox.Query) may be answered a moment
// ahead of the disk.
//
// If the store fails, nothing is let out, both cores are loaded again from what is
// durable, and every request that was under way gets [ErrReloaded]. After StoreTries
// failures in a row the loop ends with an error.
//
// Guarantees:
//
//   - Requests are carried out one after the other, in the order in which they came
//     in. A recording of their inputs replays the run.
//   - The loop blocks on the store and on requests only. What it hands over
//     (Pilots, Files, answers) is taken without waiting.
//   - A run is over (Ending) when none of its jobs runs, and all is done that durable
//     records promise. The loop ends (Leaving) with its run or, if it is Lasting, when a
//     person ends it, and no pilot is left.
//   - Runs that are begun and dropped while it works (Inbox.Begin, Inbox.Drop) are so when
//     that is durable; if the store fails, the loop has the runs that the store has.
//
// Any goroutine may use an [Inbox] and an [Ending].
package loop
