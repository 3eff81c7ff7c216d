// Package server runs a workflow: it opens what was run before in a folder, decides how
// the run begins, joins the rooms that do the work, and ends the run.
//
// The rooms are packages below this one. Package loop owns the cores and is the heart:
// read its comment first. Feed gives flow the files of inputs, launch has pilots
// started, publish keeps results and stored files, api answers pilots and people. They
// reach the run through the inbox of the loop only. All of them
// use state, convert, listen and folder (docs/decisions/0046-packages-of-server-and-pilot.md).
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
