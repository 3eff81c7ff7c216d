// Package loop owns the two cores of a run. One goroutine (Loop.Run) takes requests,
// which are all that changes a run. For each it steps dispatch, feeds the events to
// flow, gives the jobs that flow creates to dispatch, until both rest. The records of
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
//   - It ends when the run is over: no pilot is left, and all is done that durable
//     records promise.
//
// Any goroutine may use an [Inbox] and an [Ending].
package loop
