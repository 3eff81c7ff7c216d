// Package server runs a workflow, or many: it opens what was run before in a folder, decides how
// the run begins, joins the rooms that do the work, and ends the run.
//
// The rooms are packages below this one. Package loop owns the cores and is the heart:
// read its comment first. Feed gives flow the files of inputs, launch has pilots
// started, publish keeps results and stored files, api answers pilots and people. They
// reach the run through the inbox of the loop only. All of them
// use state, convert, listen and folder (docs/decisions/0045-packages.md).
//
// A lasting server (Config.Lasting) has no workflow of its own. It takes workflows while it
// works, and has a run with rooms of its own for each. A run that has succeeded is retired: its
// records move to an archive, and the loop forgets it. One that failed or was stopped stays until
// a person has it go on or removes it (docs/decisions/0136-lasting-servers.md).
//
// Guarantees:
//
//   - One server at a time runs a workflow folder; the lock ends with the process.
//   - A workflow that SubmitWorkflow has acknowledged is one run, whatever crashes; all
//     submissions with one key are one run, as long as that is kept.
//   - Requests are carried out one after the other, in the order in which they
//     came in.
//   - A published file changes from version to version in one rename, once for
//     each version, in order.
//   - The server ends only when everything that it has started has ended.
//     Pilots are an exception: it ends when it has told them to end.
//
// The socket is open to the user alone. Any goroutine may use a [Server].
package server
