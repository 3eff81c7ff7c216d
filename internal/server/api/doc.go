// Package api has the services that the server offers: TaskQueue to pilots, Workflow to
// people. It changes a run through requests to the loop only, and shows any Run: one
// that is under way, or the records of one that has ended (Resting).
//
// Connect is the client: it reaches the server of a folder or, where none runs, serves
// the records within the process. What would change a run that is not under way is
// deferred to the next one.
package api
