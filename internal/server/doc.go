// Package server runs a workflow: it feeds dispatch and flow with what happens
// outside, keeps their records, and carries out what they decide.
//
// One loop owns both cores (loop.go). It takes a request, steps dispatch, feeds
// the events to flow, gives the jobs that flow creates to dispatch, until both
// rest. The records of all waiting requests go to the store in one
// transaction; while the disk works the loop steps further requests. The loop
// lets out the effects of a transaction only when it is durable: answers to
// pilots and people, publications, removals, pilots. So the server acknowledges
// nothing that a crash could take back. Only views for people (progress, lists
// of jobs) may be a moment ahead of the disk.
//
// If the store fails, nothing is let out, both cores are loaded again from what
// is durable, and every request that was under way gets [loop.ErrReloaded]: people
// see an error, pilots connect again with their whole state, and the server's own
// goroutines ask again. After StoreTries failures in a row the run ends; a later
// run continues it.
//
// Guarantees:
//
//   - One server at a time runs a workflow folder; the lock ends with the process.
//   - Requests are carried out one after the other, in the order in which they
//     came in.
//   - A published file changes from version to version in one rename, once for
//     each version, in order.
//   - The server ends only when everything that it has started has ended.
//     Pilots are an exception: it ends when it has told them to end.
//
// The socket is open to the user alone. Any goroutine may use a [Server].
package server
